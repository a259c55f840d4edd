import { Module } from '@nestjs/common';
import { TokenRateLimits } from './token-rate-limits.service';

@Module({ providers: [TokenRateLimits], exports: [TokenRateLimits] })
export class RateLimitsModule {}
