import { Module } from '@nestjs/common';
import { RateLimitsModule } from '../rate-limits/rate-limits.module';
import { ApplicationsService } from './applications.service';

@Module({ imports: [RateLimitsModule], providers: [ApplicationsService], exports: [ApplicationsService] })
export class ApplicationsModule {}
