import type { Caller } from '@platform/access-tokens';
import { hasPersona, Persona } from '@platform/personas';
import { DAY_MS } from '@platform/time';
import type { TaskServiceConfig } from '../config';
import { withinLimits } from '../fields/fields';
import { TaskError } from '../problems/task-problem.filter';
import { type CronExpression, parseCronExpression, shortestIntervalMinutes } from './cron-expression';
import { countOccurrences, occurrencesBetween } from './occurrences';
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

/**
 * What a stored schedule says cannot be evaluated by this release and its runtime, which know other zones or
 * expressions than those that stored it.
 */
export class RecurrenceError extends Error {
  override readonly name = 'RecurrenceError';
}

/** @throws {RecurrenceError} for texts that say no recurrence */
export function recurrenceOf(text: RecurrenceText): Recurrence {
  const zone = evaluated('timeZone', () => timeZone(text.timeZone));
  const { startDate, endDate } = text;
  return {
    expression: evaluated('schedule', () => parseCronExpression(text.schedule)),
    zone,
    startsAt: startDate === null ? null : evaluated('startDate', () => startInstant(startDate, zone)),
    endsAt: endDate === null ? null : evaluated('endDate', () => endInstant(endDate, zone)),
    excludedDays: new Set((text.excludedDates ?? []).map((date) => Date.parse(`${date}T00:00:00Z`) / DAY_MS)),
  };
}

/** Whatever the dates of its calendar are. */
export function isEvaluable(text: RecurrenceText): boolean {
  try {
    recurrenceOf({ ...text, excludedDates: null });
    return true;
  } catch (error) {
    if (error instanceof RecurrenceError) return false;
    throw error;
  }
}

/** @param member of the schedule, to be named where it cannot be evaluated */
function evaluated<T>(member: string, evaluate: () => T): T {
  try {
    const value = evaluate();
    if (value instanceof Date && Number.isNaN(value.getTime())) throw new RangeError('is not a date');
    return value;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new RecurrenceError(`${member} ${message}`, { cause: error });
  }
}

/** Its `endDate` has passed. */
export function hasEnded({ endsAt }: Recurrence, now: Date): boolean {
  return endsAt !== null && endsAt < now;
}

/** The first `limit` instants in (`after`, `until`] at which the schedule is due, ascending. */
export function dueBetween(
  { expression, zone, startsAt, endsAt, excludedDays }: Recurrence,
  after: Date,
  until: Date,
  limit?: number,
): Date[] {
  const span = dueSpan({ startsAt, endsAt }, after, until);
  if (span === null) return [];
  return occurrencesBetween(expression, zone, span.after, span.until, { excludedDays, limit });
}

/** How many instants in (`after`, `until`] the schedule is due at. */
export function countDue(recurrence: Recurrence, after: Date, until: Date): number {
  const { expression, zone, excludedDays } = recurrence;
  const span = dueSpan(recurrence, after, until);
  return span === null ? 0 : countOccurrences(expression, zone, span.after, span.until, excludedDays);
}

/** The part of (`after`, `until`] that lies between the schedule's start and its end. */
function dueSpan(
  { startsAt, endsAt }: Pick<Recurrence, 'startsAt' | 'endsAt'>,
  after: Date,
  until: Date,
): { after: Date; until: Date } | null {
  const first = Math.max(after.getTime(), startsAt === null ? -Infinity : startsAt.getTime() - 1);
  const last = Math.min(until.getTime(), endsAt?.getTime() ?? Infinity);
  return first >= last ? null : { after: new Date(first), until: new Date(last) };
}

/** The least minutes between two occurrences of a schedule that this caller makes or changes. */
export function minIntervalMinutes(
  { personas }: Pick<Caller, 'personas'>,
  { SCHEDULE_MIN_INTERVAL_MINUTES }: Pick<TaskServiceConfig, 'SCHEDULE_MIN_INTERVAL_MINUTES'>,
): number {
  return hasPersona(personas, Persona.InternalPartner) ? 1 : SCHEDULE_MIN_INTERVAL_MINUTES;
}

/**
 * Judges what a schedule says, whoever it comes from.
 * @param minIntervalMinutes the least between two occurrences
 * @throws {TaskError} schedule-not-evaluable, instant-out-of-range, schedule-ends-before-start,
 * schedule-too-frequent
 */
export function checkRecurrence(
  text: Omit<RecurrenceText, 'excludedDates'>,
  minIntervalMinutes: number,
): Recurrence {
  const recurrence = readableRecurrence({ ...text, excludedDates: null });
  const { expression, startsAt, endsAt } = recurrence;
  for (const instant of [startsAt, endsAt]) if (instant) withinLimits(instant);
  if (startsAt && endsAt && endsAt < startsAt) throw new TaskError('schedule-ends-before-start');
  if (shortestIntervalMinutes(expression) < minIntervalMinutes) throw new TaskError('schedule-too-frequent');
  return recurrence;
}

/** The same for what is stored and a caller asks about. @throws {TaskError} schedule-not-evaluable */
export function readableRecurrence(text: RecurrenceText): Recurrence {
  try {
    return recurrenceOf(text);
  } catch (error) {
    throw new TaskError('schedule-not-evaluable', { cause: error });
  }
}
