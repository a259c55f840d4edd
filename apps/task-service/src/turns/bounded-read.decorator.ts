import {
  applyDecorators,
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import { callerOf } from '@platform/access-tokens';
import type { AuthenticatedRequest } from '@platform/access-tokens';
import { TURN_BOUNDS, type TurnBound, type Turns } from '@platform/database';
import { Metrics } from '@platform/service-defaults';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { connectionsForReads, type httpPoolSize, readsOfOneCaller, TASK_CONFIG } from '../config';
import { TaskProblemResponse } from '../problems/task-problem.filter';
import { turnsOf } from './turns';

const WAITING = { perShare: 100, inAll: 1_000 };
/** Reads for which auth-service is asked first: while it is away, they wait for it in their turns. */
const ASKING = 'facilities of auth-service';
const REFUSALS = { ofShare: 'too-many-reads-at-once', ofAll: 'reads-busy' } as const;

/**
 * Bounds the reads of one caller, and of all callers, that run at once in this replica. A page over a
 * thousand facilities takes a connection for tens of milliseconds: without a share one caller has all of
 * them.
 */
@Injectable()
export class ReadTurns implements NestInterceptor {
  private readonly turns: Turns;
  private readonly perCaller: number;
  private readonly asking: number;

  constructor(@Inject(TASK_CONFIG) config: Parameters<typeof httpPoolSize>[0], metrics: Metrics) {
    const refusals = metrics.counter(
      'task_read_refusals_total',
      'Reads refused because too many waited for a turn (of one caller, or in the replica) or for too long a time',
      ['bound'],
    );
    // Prometheus sees no rise in a series that begins with 1.
    for (const bound of TURN_BOUNDS) refusals.inc({ bound }, 0);
    const refused = (bound: TurnBound): void => refusals.inc({ bound });
    this.perCaller = readsOfOneCaller(config);
    this.asking = Math.max(1, Math.floor(connectionsForReads(config) / 2));
    this.turns = turnsOf(connectionsForReads(config), WAITING, REFUSALS, refused);
  }

  /** @throws {TaskError} too-many-reads-at-once, reads-busy */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { subject, overflow } = callerOf(context.switchToHttp().getRequest<AuthenticatedRequest>());
    const shares = [{ key: `caller ${subject}`, limit: this.perCaller }];
    if (overflow.includes('facilities')) shares.push({ key: ASKING, limit: this.asking });
    return from(this.turns.run(shares, () => lastValueFrom(next.handle())));
  }
}

/** A read that waits for its caller's turn. @param instance the path of the documented example */
export const BoundedRead = (instance: string): MethodDecorator =>
  applyDecorators(
    UseInterceptors(ReadTurns),
    TaskProblemResponse(
      'Too many reads of the same caller are under way. `Retry-After` tells when to ask again.',
      instance,
      'too-many-reads-at-once',
    ),
  );
