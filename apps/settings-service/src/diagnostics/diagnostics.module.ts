import { Module } from '@nestjs/common';
import { DiagnosticsController } from './diagnostics.controller';

/** Health check, ping and database status. */
@Module({ controllers: [DiagnosticsController] })
export class DiagnosticsModule {}
