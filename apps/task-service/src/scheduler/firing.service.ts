import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isStatementFailure } from '@platform/database';
import { openSpan, type TraceContext, traceOf, withTrace } from '@platform/service-defaults';
import { SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import { DataSource } from 'typeorm';
import { RELAY_POOL } from '../database-layout';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { parseCronExpression } from '../recurrence/cron-expression';
import { timeZone } from '../recurrence/time-zone';
import { decideFire, generationRequested } from './due-fire';
import { JOB_NAME } from './trigger.entity';
import type { DecidedFire, Decisions, Fired } from './record-fires';
import { type Decide, type DuePosition, type DueTrigger, TriggersRepository } from './triggers.repository';

/** Numbers of triggers in one batch. */
export interface FiredBatch {
  readonly acquired: number;
  readonly fired: number;
  readonly misfired: number;
}

/**
 * Position at which a scan for due triggers starts: no waiting trigger comes before `from`. A scan from there
 * skips the index entries of earlier fires, which would come first.
 */
interface TrustedStart {
  readonly from: DuePosition;
  readonly trustedUntilMs: number;
}

/**
 * Time for which a start is trusted. An overdue trigger that another replica has resumed may lie before the
 * start; it is found after at most this time.
 */
const START_TRUSTED_MS = 15 * SECOND_MS;
/** Batches after which the start is read again. */
const BATCHES_PER_START = 50;

/**
 * Fires one batch of due triggers in one transaction: locks them, records the fires, stores the messages and
 * advances the triggers. There is no acquired state to clean up: the locks of a crashed replica end with its
 * connection.
 */
@Injectable()
export class FiringService {
  private readonly logger = new Logger(FiringService.name);
  private start: TrustedStart | null = null;
  private resets = 0;
  private batches = 0;

  constructor(
    @InjectDataSource(RELAY_POOL) private readonly dataSource: DataSource,
    private readonly triggers: TriggersRepository,
    private readonly outbound: OutboundProxy,
  ) {}

  /**
   * Returns the milliseconds, by the database's clock, until the next trigger is due; negative if one is
   * overdue, null if there is none.
   */
  async findNextDueDelayMs(): Promise<number | null> {
    const known = this.knownStart();
    const resetsBefore = this.resets;
    const { delayMs, from } = await this.triggers.findNextDue(this.dataSource, known?.from ?? null);
    const trustedUntilMs = known?.trustedUntilMs ?? SYSTEM_CLOCK.monotonicMs() + START_TRUSTED_MS;
    if (resetsBefore === this.resets) this.start = { from, trustedUntilMs };
    return delayMs;
  }

  /** Makes the next scan read all triggers, because one has changed. */
  resetStart(): void {
    this.resets += 1;
    this.start = null;
  }

  async fireBatch(): Promise<FiredBatch> {
    this.batches += 1;
    if (this.batches % BATCHES_PER_START === 0) await this.findNextDueDelayMs();
    const { acquired, recorded } = await this.fireDue();
    this.outbound.wake(recorded.map(({ message }) => message));
    return { acquired, fired: recorded.length, misfired: recorded.filter((fire) => fire.misfired).length };
  }

  /**
   * Fires a batch. If PostgreSQL rejects it, fires each trigger separately, so that one bad trigger does not
   * block the others.
   */
  private async fireDue(): Promise<Fired> {
    const decide: Decide = (due) => this.decide(due);
    const from = this.knownStart()?.from ?? null;
    try {
      return await this.triggers.fireDue(this.dataSource, decide, from);
    } catch (error) {
      if (!isStatementFailure(error)) throw error;
      this.logger.error(`a batch of due triggers was rejected and is fired one by one: ${String(error)}`);
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
        // E.g. a zone that this runtime does not know. One such trigger must not block the batch for ever.
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
    const shifted = (instant: Date, seconds: number): Date =>
      new Date(instant.getTime() + seconds * SECOND_MS);
    // Decides without jitter, as of a time that is earlier by the jitter.
    const [due, at] = [shifted(dueAt, -jitterSeconds), shifted(now, -jitterSeconds)];
    const decided = decideFire(due, at, parseCronExpression(schedule), timeZone(zone));
    const fire = {
      ...decided,
      scheduledAt: shifted(decided.scheduledAt, jitterSeconds),
      nextFireAt: shifted(decided.nextFireAt, jitterSeconds),
    };
    const message = this.outbound.prepare(generationRequested(facilityId, { requestedAt: now, fire }));
    return { ...fire, facilityId, message };
  }
}

/**
 * Opens the span of one fire. It starts a new trace, because a trigger fires for years and would otherwise
 * extend one trace for ever. It links to the trace in which the trigger was created or last changed.
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
