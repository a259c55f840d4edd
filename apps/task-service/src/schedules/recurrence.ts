import { DAY_MS } from '@platform/time';
import { parseCronExpression } from './cron-expression';
import type { CronExpression } from './cron-expression';
import { occurrencesBetween } from './occurrences';
import { endInstant, startInstant, timeZone } from './time-zone';
import type { TimeZone } from './time-zone';

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
