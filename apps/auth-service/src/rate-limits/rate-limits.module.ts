import { Module } from '@nestjs/common';
import { RateLimitsRepository } from './rate-limits.repository';
import { RATE_LIMITS } from './rate-limits.service';
import { TokenAllowances } from './token-allowances.service';

/** The limits on token requests and on issued tokens. */
@Module({
  providers: [RateLimitsRepository, RATE_LIMITS, TokenAllowances],
  exports: [RATE_LIMITS, TokenAllowances],
})
export class RateLimitsModule {}
