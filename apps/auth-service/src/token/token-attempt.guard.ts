import { Injectable } from '@nestjs/common';
import type { CallHandler, CanActivate, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Observable } from 'rxjs';
import { withinAttempt } from '../audit/token-attempt';
import { TokenAttempts } from '../audit/token-attempts.service';
import { TokenRateLimits } from '../rate-limits/token-rate-limits.service';

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

/** Makes the attempt known to everything that handles the request. */
@Injectable()
export class TokenAttemptInterceptor implements NestInterceptor {
  constructor(private readonly attempts: TokenAttempts) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const attempt = this.attempts.of(context.switchToHttp().getRequest<FastifyRequest>());
    return new Observable((subscriber) => withinAttempt(attempt, () => next.handle().subscribe(subscriber)));
  }
}
