import { Inject, Injectable } from '@nestjs/common';
import type { CanActivate } from '@nestjs/common';
import { currentAttempt } from '../audit/token-attempt';
import { RateLimitsService } from './rate-limits.service';

/** Lets no address ask more often than it may: before anything about the request is looked up. */
@Injectable()
export class AddressRateGuard implements CanActivate {
  constructor(@Inject(RateLimitsService) private readonly limits: RateLimitsService | null) {}

  async canActivate(): Promise<boolean> {
    await this.limits?.admitAddress(currentAttempt().address);
    return true;
  }
}
