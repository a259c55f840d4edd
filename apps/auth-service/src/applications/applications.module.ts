import { Module } from '@nestjs/common';
import { TokenRateLimits } from '../rate-limits/token-rate-limits.service';
import { ApplicationsService } from './applications.service';

@Module({
  providers: [ApplicationsService, TokenRateLimits],
  exports: [ApplicationsService, TokenRateLimits],
})
export class ApplicationsModule {}
