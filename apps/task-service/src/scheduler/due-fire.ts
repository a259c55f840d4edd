import { TaskInstanceGenerationRequested } from '@platform/contracts';
import { SECOND_MS } from '@platform/time';
import { outboundEvent, type OutboundEvent } from '../outbound/outbound-event';
import { CronExpressionError, parseCronExpression, type CronExpression } from '../schedules/cron-expression';
import { countOccurrences, findLatestOccurrence, nextOccurrence } from '../schedules/occurrences';
import { timeZone, TimeZoneError, type TimeZone } from '../schedules/time-zone';
import type { Trigger } from './trigger.entity';

/** A trigger later than this is misfired: 1.5 hours. Source: task messaging spec, Scheduler rules. */
export const MISFIRE_THRESHOLD_SECONDS = 5_400;

/** What one due trigger does in this batch. */
export interface DueFire {
  /** The occurrence this fire stands for; with the facility it is the fire's identity. */
  readonly scheduledAt: Date;
  readonly misfired: boolean;
  /** Occurrences that one misfire stands for, itself included; 0 for an ordinary fire. */
  readonly missedCount: number;
  readonly nextFireAt: Date;
}

type FiringTrigger = Pick<Trigger, 'schedule' | 'timeZone' | 'nextFireAt' | 'jitterSeconds'>;

/**
 * Decides the fire of a trigger whose `dueAt` is not after `now` (the database's clock).
 *
 * Up to 5,400 s late (whole seconds) its oldest missed occurrence fires, and the next one becomes due at once
 * if it has passed too, so every missed occurrence fires, oldest first. Later than that the trigger is
 * misfired: one fire for the latest missed occurrence stands for all of them.
 */
export function decideFire(dueAt: Date, now: Date, expression: CronExpression, zone: TimeZone): DueFire {
  const lateSeconds = Math.floor((now.getTime() - dueAt.getTime()) / SECOND_MS);
  if (lateSeconds <= MISFIRE_THRESHOLD_SECONDS) {
    const nextFireAt = nextOccurrence(expression, zone, dueAt);
    return { scheduledAt: dueAt, misfired: false, missedCount: 0, nextFireAt };
  }
  const latest = findLatestOccurrence(expression, zone, now);
  // `dueAt` itself counts even if the zone's rules changed since and it is no occurrence any more.
  const scheduledAt = latest !== null && latest > dueAt ? latest : dueAt;
  const missedCount = 1 + countOccurrences(expression, zone, dueAt, scheduledAt);
  return { scheduledAt, misfired: true, missedCount, nextFireAt: nextOccurrence(expression, zone, now) };
}

/**
 * When a trigger that has jitter is to fire next: the first of its occurrences, delayed by the jitter, after
 * `now`.
 */
export function nextFireAfter(
  now: Date,
  jitterSeconds: number,
  expression: CronExpression,
  zone: TimeZone,
): Date {
  const jitterMs = jitterSeconds * SECOND_MS;
  const occurrence = nextOccurrence(expression, zone, new Date(now.getTime() - jitterMs));
  return new Date(occurrence.getTime() + jitterMs);
}

/**
 * When a trigger fires for the second time from `now`. A next fire beyond its next occurrence, planned by a
 * clock that was ahead, does not count. Null if the trigger cannot be evaluated: its own fire tells of that.
 */
export function findSecondFire(trigger: FiringTrigger, now: Date): Date | null {
  const { schedule, timeZone: zoneName, nextFireAt, jitterSeconds } = trigger;
  try {
    const [expression, zone] = [parseCronExpression(schedule), timeZone(zoneName)];
    const expected = nextFireAfter(now, jitterSeconds, expression, zone);
    return nextFireAfter(nextFireAt < expected ? nextFireAt : expected, jitterSeconds, expression, zone);
  } catch (error) {
    if (error instanceof CronExpressionError || error instanceof TimeZoneError) return null;
    throw error;
  }
}

/**
 * The message that has a facility's instances generated: because its trigger fired, or, without a fire,
 * because something changed or somebody asked for it.
 */
export function generationRequested(
  facilityId: number,
  {
    requestedAt,
    fire,
  }: { requestedAt: Date; fire?: Pick<DueFire, 'scheduledAt' | 'misfired' | 'missedCount'> },
): OutboundEvent {
  return outboundEvent(
    TaskInstanceGenerationRequested,
    {
      facilityId,
      scheduledFireTimeUtc: (fire?.scheduledAt ?? requestedAt).toISOString(),
      fireTimeUtc: requestedAt.toISOString(),
      misfired: fire?.misfired ?? false,
      missedCount: fire?.missedCount ?? 0,
    },
    facilityId,
  );
}
