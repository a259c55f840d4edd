import {
  applyDecorators,
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import { callerOf } from '@platform/access-tokens';
import type { AuthenticatedRequest } from '@platform/access-tokens';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { TaskProblemResponse } from '../problems/task-problem.filter';
import { ReadSlots } from './read-slots.service';

/**
 * Runs a request in a slot of its caller. Nest creates one interceptor per module, so the slots are in a
 * provider that all of them share.
 */
@Injectable()
class ReadInSlot implements NestInterceptor {
  constructor(private readonly slots: ReadSlots) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const caller = callerOf(context.switchToHttp().getRequest<AuthenticatedRequest>());
    return from(this.slots.run(caller, () => lastValueFrom(next.handle())));
  }
}

/**
 * Makes a read wait for a slot of its caller, and documents that.
 * @param instance path of the documented example
 */
export const BoundedRead = (instance: string): MethodDecorator =>
  applyDecorators(
    UseInterceptors(ReadInSlot),
    TaskProblemResponse(
      'Too many reads of the same caller are under way. `Retry-After` says when to retry.',
      instance,
      'too-many-reads-at-once',
    ),
  );
