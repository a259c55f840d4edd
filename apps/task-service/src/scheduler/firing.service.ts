import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isStatementFailure } from '@platform/database';
import { openSpan, type TraceContext, traceOf, withTrace } from '@platform/service-defaults';
import { SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import { DataSource } from 'typeorm';
import { RELAY_POOL } from '../database-layout';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { parseCronExpression } from '../schedules/cron-expression';
import { timeZone } from '../schedules/time-zone';
import { decideFire, generationRequested } from './due-fire';
import { JOB_NAME } from './trigger.entity';
import type { DecidedFire, Decisions, Fired } from './record-fires';
import { type Decide, type DuePosition, type DueTrigger, TriggersRepository } from './triggers.repository';

/** What one batch did. */
export interface FiredBatch {
  readonly acquired: number;
  readonly fired: number;
  readonly misfired: number;
}

/**
 * No trigger that waits comes before `from`. What fired earlier has left entries at the head of the index,
 * which are passed over.
 */
interface TrustedStart {
  readonly from: DuePosition;
  readonly trustedUntilMs: number;
}

/** Another replica may resume a trigger that is overdue: so much later it is seen here. */
const START_TRUSTED_MS = 15 * SECOND_MS;
/** After so many batches the start is found anew. */
const BATCHES_PER_START = 50;

/**
 * Fires one batch of due triggers: lock, record, store the messages and move on, in one transaction. There is
 * no acquired state to clean up: a dead replica's locks vanish with its connection.
 */
@Injectable()
export class FiringService {
  private readonly logger = new Logger(FiringService.name);
  private start: TrustedStart | null = null;
  private forgotten = 0;
  private batches = 0;

  constructor(
    @InjectDataSource(RELAY_POOL) private readonly dataSource: DataSource,
    private readonly triggers: TriggersRepository,
    private readonly outbound: OutboundProxy,
  ) {}

  /**
   * Milliseconds, by the database's clock, until the next trigger is due; negative when one is overdue, null
   * without any.
   */
  async findNextDueDelayMs(): Promise<number | null> {
    const known = this.knownStart();
    const asked = this.forgotten;
    const { delayMs, from } = await this.triggers.findNextDue(this.dataSource, known?.from ?? null);
    const trustedUntilMs = known?.trustedUntilMs ?? SYSTEM_CLOCK.monotonicMs() + START_TRUSTED_MS;
    if (asked === this.forgotten) this.start = { from, trustedUntilMs };
    return delayMs;
  }

  /** Looks at all triggers the next time: one has changed. */
  forgetStart(): void {
    this.forgotten += 1;
    this.start = null;
  }

  async fireBatch(): Promise<FiredBatch> {
    this.batches += 1;
    if (this.batches % BATCHES_PER_START === 0) await this.findNextDueDelayMs();
    const { acquired, recorded } = await this.fireDue();
    this.outbound.wake(recorded.map(({ message }) => message));
    return { acquired, fired: recorded.length, misfired: recorded.filter((fire) => fire.misfired).length };
  }

  /** One trigger whose fire PostgreSQL refuses keeps no other from firing. */
  private async fireDue(): Promise<Fired> {
    const decide: Decide = (due) => this.decide(due);
    const from = this.knownStart()?.from ?? null;
    try {
      return await this.triggers.fireDue(this.dataSource, decide, from);
    } catch (error) {
      if (!isStatementFailure(error)) throw error;
      this.logger.error(`a batch of due triggers is refused, and fired one by one: ${String(error)}`);
      return this.triggers.fireEach(this.dataSource, decide, from);
    }
  }

  private knownStart(): TrustedStart | null {
    return this.start !== null && SYSTEM_CLOCK.monotonicMs() < this.start.trustedUntilMs ? this.start : null;
  }

  private decide(due: readonly DueTrigger[]): Decisions {
    const decisions: Decisions = { fires: [], failed: [] };
    for (const trigger of due) {
      const { facilityId } = trigger;
      const trace = openFireSpan(trigger);
      try {
        decisions.fires.push(withTrace(trace, () => this.fire(trigger)));
      } catch (error) {
        trace.span?.fail('trigger-not-evaluated');
        // E.g. a zone that this runtime does not know: one such trigger must not hold up the batch for good.
        withTrace(trace, () => {
          this.logger.error(
            `trigger of facility ${String(facilityId)} cannot be evaluated: ${String(error)}`,
          );
        });
        decisions.failed.push({ facilityId, error: String(error) });
      } finally {
        trace.span?.end();
      }
    }
    return decisions;
  }

  private fire({ facilityId, dueAt, now, schedule, timeZone: zone, jitterSeconds }: DueTrigger): DecidedFire {
    const later = (instant: Date, seconds: number): Date => new Date(instant.getTime() + seconds * SECOND_MS);
    // Decided as if there were no jitter and it were that much earlier.
    const [due, at] = [later(dueAt, -jitterSeconds), later(now, -jitterSeconds)];
    const decided = decideFire(due, at, parseCronExpression(schedule), timeZone(zone));
    const fire = {
      ...decided,
      scheduledAt: later(decided.scheduledAt, jitterSeconds),
      nextFireAt: later(decided.nextFireAt, jitterSeconds),
    };
    const message = this.outbound.prepare(generationRequested(facilityId, { requestedAt: now, fire }));
    return { ...fire, facilityId, message };
  }
}

/**
 * Opens the span of one fire. It begins a trace of its own: a trigger fires for years, and a trace that never
 * ends shows nothing. It links to the trace in which the trigger was created or last changed.
 */
function openFireSpan({ facilityId, originTrace }: DueTrigger): TraceContext {
  const origin = originTrace === null ? null : traceOf({ traceparent: originTrace });
  return openSpan({
    name: `fire ${JOB_NAME}`,
    kind: 'internal',
    parent: null,
    attributes: { 'task.facility.id': facilityId },
    links: origin === null ? [] : [origin],
  });
}
