import { Module } from '@nestjs/common';
import { BacklogMetrics } from './backlog-metrics.service';
import { DiagnosticsController } from './diagnostics.controller';

@Module({ controllers: [DiagnosticsController], providers: [BacklogMetrics] })
export class DiagnosticsModule {}
