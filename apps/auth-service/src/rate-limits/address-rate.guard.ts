import { Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { TokenAuditService } from '../audit/token-audit.service';
import { RateLimitsService } from './rate-limits.service';

/** Lets no address ask more often than it may: before anything about the request is looked up. */
@Injectable()
export class AddressRateGuard implements CanActivate {
  constructor(
    private readonly audit: TokenAuditService,
    private readonly limits: RateLimitsService,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    await this.limits.admitAddress(this.audit.attemptOf(request).address);
    return true;
  }
}
