import type { Caller } from '@platform/access-tokens';
import { hasPersona, Persona } from '@platform/personas';
import { DAY_MS } from '@platform/time';
import type { TaskServiceConfig } from '../config';
import { withinLimits } from '../fields/fields';
import { TaskError } from '../problems/task-error';
import { type CronExpression, parseCronExpression, shortestIntervalMinutes } from './cron-expression';
import { countOccurrences, occurrencesBetween } from './occurrences';
import { endInstant, startInstant, timeZone, type TimeZone } from './time-zone';

export interface RecurrenceText {
  /** Cron expression with five fields. */
  readonly schedule: string;
  readonly timeZone: string;
  readonly startDate: string | null;
  readonly endDate: string | null;
  /** Local dates of its calendar, e.g. `2026-12-25`. */
  readonly excludedDates: readonly string[] | null;
}

/** A parsed recurrence. */
export interface Recurrence {
  readonly expression: CronExpression;
  readonly zone: TimeZone;
  readonly startsAt: Date | null;
  readonly endsAt: Date | null;
  /** Days since 1970-01-01. */
  readonly excludedDays: ReadonlySet<number>;
}

/**
 * Thrown for a stored schedule that cannot be evaluated, because this release or its runtime does not know
 * its expression or time zone.
 */
export class RecurrenceError extends Error {
  override readonly name = 'RecurrenceError';
}

/**
 * Parses a recurrence.
 * @throws {RecurrenceError} if a member cannot be evaluated
 */
export function recurrenceOf(text: RecurrenceText): Recurrence {
  const zone = parsedMember('timeZone', () => timeZone(text.timeZone));
  const { startDate, endDate } = text;
  return {
    expression: parsedMember('schedule', () => parseCronExpression(text.schedule)),
    zone,
    startsAt: startDate === null ? null : parsedMember('startDate', () => startInstant(startDate, zone)),
    endsAt: endDate === null ? null : parsedMember('endDate', () => endInstant(endDate, zone)),
    excludedDays: new Set((text.excludedDates ?? []).map((date) => Date.parse(`${date}T00:00:00Z`) / DAY_MS)),
  };
}

/** Returns whether the recurrence can be parsed. Ignores the calendar. */
export function isEvaluable(text: RecurrenceText): boolean {
  try {
    recurrenceOf({ ...text, excludedDates: null });
    return true;
  } catch (error) {
    if (error instanceof RecurrenceError) return false;
    throw error;
  }
}

/**
 * Parses a member of the schedule.
 * @param member name for the error message
 */
function parsedMember<T>(member: string, evaluate: () => T): T {
  try {
    const value = evaluate();
    if (value instanceof Date && Number.isNaN(value.getTime())) throw new RangeError('is not a date');
    return value;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new RecurrenceError(`${member} ${message}`, { cause: error });
  }
}

/** Returns whether the `endDate` has passed. */
export function hasEnded({ endsAt }: Recurrence, now: Date): boolean {
  return endsAt !== null && endsAt < now;
}

/** Returns the first `limit` instants in (`after`, `until`] at which the schedule is due, ascending. */
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

/** Counts the instants in (`after`, `until`] at which the schedule is due. */
export function countDue(recurrence: Recurrence, after: Date, until: Date): number {
  const { expression, zone, excludedDays } = recurrence;
  const span = dueSpan(recurrence, after, until);
  return span === null ? 0 : countOccurrences(expression, zone, span.after, span.until, excludedDays);
}

/** Returns the part of (`after`, `until`] between the schedule's start and end. Null if it is empty. */
function dueSpan(
  { startsAt, endsAt }: Pick<Recurrence, 'startsAt' | 'endsAt'>,
  after: Date,
  until: Date,
): { after: Date; until: Date } | null {
  const first = Math.max(after.getTime(), startsAt === null ? -Infinity : startsAt.getTime() - 1);
  const last = Math.min(until.getTime(), endsAt?.getTime() ?? Infinity);
  return first >= last ? null : { after: new Date(first), until: new Date(last) };
}

/** Returns the minimum minutes between two occurrences for schedules that this caller creates or changes. */
export function minIntervalMinutes(
  { personas }: Pick<Caller, 'personas'>,
  { SCHEDULE_MIN_INTERVAL_MINUTES }: Pick<TaskServiceConfig, 'SCHEDULE_MIN_INTERVAL_MINUTES'>,
): number {
  return hasPersona(personas, Persona.InternalPartner) ? 1 : SCHEDULE_MIN_INTERVAL_MINUTES;
}

/**
 * Validates the recurrence of a schedule.
 * @param minIntervalMinutes minimum minutes between two occurrences
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

/**
 * Parses a recurrence for a caller.
 * @throws {TaskError} schedule-not-evaluable
 */
export function readableRecurrence(text: RecurrenceText): Recurrence {
  try {
    return recurrenceOf(text);
  } catch (error) {
    throw new TaskError('schedule-not-evaluable', { cause: error });
  }
}
