import { Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { TokenAttempts } from '../audit/token-attempts.service';
import { TokenRateLimits } from './token-rate-limits.service';

/** Lets no address ask more often than it may: before anything about the request is looked up. */
@Injectable()
export class AddressRateGuard implements CanActivate {
  constructor(
    private readonly attempts: TokenAttempts,
    private readonly limits: TokenRateLimits,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    await this.limits.admitAddress(this.attempts.of(request).address);
    return true;
  }
}
