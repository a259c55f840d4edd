import type { Caller } from '@platform/access-tokens';
import { hasPersona, Persona } from '@platform/personas';
import { DAY_MS } from '@platform/time';
import type { TaskServiceConfig } from '../config';
import { withinLimits } from '../fields/fields';
import { TaskError } from '../problems/task-problem.filter';
import { type CronExpression, parseCronExpression, shortestIntervalMinutes } from './cron-expression';
import { occurrencesBetween } from './occurrences';
import { endInstant, startInstant, timeZone, type TimeZone } from './time-zone';

export interface RecurrenceText {
  /** Cron expression with five fields. */
  readonly schedule: string;
  readonly timeZone: string;
  readonly startDate: string | null;
  readonly endDate: string | null;
  /** Local dates, `2026-12-25`, of its calendar. */
  readonly excludedDates: readonly string[] | null;
}

/** The same, evaluated. */
export interface Recurrence {
  readonly expression: CronExpression;
  readonly zone: TimeZone;
  readonly startsAt: Date | null;
  readonly endsAt: Date | null;
  /** Days since 1970-01-01. */
  readonly excludedDays: ReadonlySet<number>;
}

/** @throws {CronExpressionError | TimeZoneError} for texts that are none */
export function recurrenceOf(text: RecurrenceText): Recurrence {
  const zone = timeZone(text.timeZone);
  return {
    expression: parseCronExpression(text.schedule),
    zone,
    startsAt: text.startDate === null ? null : startInstant(text.startDate, zone),
    endsAt: text.endDate === null ? null : endInstant(text.endDate, zone),
    excludedDays: new Set((text.excludedDates ?? []).map((date) => Date.parse(`${date}T00:00:00Z`) / DAY_MS)),
  };
}

/** The first `limit` instants in (`after`, `until`] at which the schedule is due, ascending. */
export function dueBetween(
  { expression, zone, startsAt, endsAt, excludedDays }: Recurrence,
  after: Date,
  until: Date,
  limit?: number,
): Date[] {
  const first = Math.max(after.getTime(), startsAt === null ? -Infinity : startsAt.getTime() - 1);
  const last = Math.min(until.getTime(), endsAt?.getTime() ?? Infinity);
  if (first >= last) return [];
  return occurrencesBetween(expression, zone, new Date(first), new Date(last), { excludedDays, limit });
}

/** The least minutes between two occurrences of a schedule that this caller makes or changes. */
export function minIntervalMinutes(
  { personas }: Pick<Caller, 'personas'>,
  { SCHEDULE_MIN_INTERVAL_MINUTES }: Pick<TaskServiceConfig, 'SCHEDULE_MIN_INTERVAL_MINUTES'>,
): number {
  return hasPersona(personas, Persona.InternalPartner) ? 1 : SCHEDULE_MIN_INTERVAL_MINUTES;
}

/** Judges what a schedule says, whoever it comes from.
 *  @param minIntervalMinutes the least between two occurrences
 *  @returns the first instant at which it may be due; null: from its creation on
 *  @throws {TaskError} instant-out-of-range, schedule-ends-before-start, schedule-too-frequent */
export function checkRecurrence(
  text: Omit<RecurrenceText, 'excludedDates'>,
  minIntervalMinutes: number,
): Date | null {
  const { expression, startsAt, endsAt } = recurrenceOf({ ...text, excludedDates: null });
  for (const instant of [startsAt, endsAt]) if (instant) withinLimits(instant);
  if (startsAt && endsAt && endsAt < startsAt) throw new TaskError('schedule-ends-before-start');
  if (shortestIntervalMinutes(expression) < minIntervalMinutes) throw new TaskError('schedule-too-frequent');
  return startsAt;
}
