import { TaskInstanceGenerationRequested } from '@platform/contracts';
import { SECOND_MS } from '@platform/time';
import { outboundEvent, type OutboundEvent } from '../outbound/outbound-event';
import { CronExpressionError, parseCronExpression, type CronExpression } from '../recurrence/cron-expression';
import { countOccurrences, findLatestOccurrence, nextOccurrence } from '../recurrence/occurrences';
import { timeZone, TimeZoneError, type TimeZone } from '../recurrence/time-zone';
import type { Trigger } from './trigger.entity';

/**
 * Seconds of lateness beyond which a fire is a misfire: 1.5 hours. Source: task messaging spec, Scheduler
 * rules.
 */
export const MISFIRE_THRESHOLD_SECONDS = 5_400;

/** The fire of one due trigger in a batch. */
export interface DueFire {
  /** The occurrence that fires. With the facility it identifies the fire. */
  readonly scheduledAt: Date;
  readonly misfired: boolean;
  /** Occurrences that a misfire replaces, itself included; 0 for an ordinary fire. */
  readonly missedCount: number;
  readonly nextFireAt: Date;
}

type FiringTrigger = Pick<Trigger, 'schedule' | 'timeZone' | 'nextFireAt' | 'jitterSeconds'>;

/**
 * Decides the fire of a trigger whose `dueAt` is not after `now` (the database's clock).
 *
 * Up to 5,400 s late (whole seconds), the oldest missed occurrence fires. If the next one has passed too, it
 * is due at once, so every missed occurrence fires, oldest first. Later than that, the trigger is misfired:
 * one fire for the latest missed occurrence replaces all of them.
 */
export function decideFire(dueAt: Date, now: Date, expression: CronExpression, zone: TimeZone): DueFire {
  const lateSeconds = Math.floor((now.getTime() - dueAt.getTime()) / SECOND_MS);
  if (lateSeconds <= MISFIRE_THRESHOLD_SECONDS) {
    const nextFireAt = nextOccurrence(expression, zone, dueAt);
    return { scheduledAt: dueAt, misfired: false, missedCount: 0, nextFireAt };
  }
  const latest = findLatestOccurrence(expression, zone, now);
  // `dueAt` counts even if it is no occurrence any more, because the rules of the zone have changed.
  const scheduledAt = latest !== null && latest > dueAt ? latest : dueAt;
  const missedCount = 1 + countOccurrences(expression, zone, dueAt, scheduledAt);
  return { scheduledAt, misfired: true, missedCount, nextFireAt: nextOccurrence(expression, zone, now) };
}

/**
 * Returns the next fire of a trigger with jitter: the first instant after `now` that is an occurrence plus
 * the jitter.
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
 * Returns the second fire of a trigger after `now`. A next fire beyond the next occurrence was planned by a
 * clock that was ahead, and is ignored. Null if the trigger cannot be evaluated; its next fire reports that.
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
 * Returns the message that requests generation for a facility: because its trigger fired, or, without `fire`,
 * because of a change or a command.
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
