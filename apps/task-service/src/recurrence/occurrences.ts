import { DAY_MS, HOUR_MS, MINUTE_MS } from '@platform/time';
import { matchesDay } from './cron-expression';
import type { CronExpression } from './cron-expression';
import { instantOfWallTime, instantsOfWallTime } from './time-zone';
import type { TimeZone } from './time-zone';

/**
 * Maximum days between two due days: 29 February as a Sunday, around a year such as 2100, which is not a leap
 * year.
 */
const LONGEST_GAP_DAYS = 40 * 366 + 2;
const HOURS_PER_DAY = 24;

/**
 * Returns the first instant after `after` at which the expression is due in the zone, in whole minutes.
 *
 * Daylight saving: a list of hours names wall-clock times, so a time skipped in spring is due later by the
 * length of the gap (02:30 → 03:30), and a time repeated in autumn is due once, at its first pass. Hour `*`
 * means elapsed time: no time is moved, and the repeated hour is due twice.
 *
 * The same occurrences follow from any `after`: they are computed per calendar day. Stepping from a start
 * instant, as cron-parser does, gives other results if it starts inside a transition.
 * @throws {RangeError} if nothing is due within forty years, which `parseCronExpression` rules out.
 */
export function nextOccurrence(expression: CronExpression, zone: TimeZone, after: Date): Date {
  const afterMs = after.getTime();
  const firstDay = localDay(zone, afterMs) - 1;
  for (let day = firstDay; day <= firstDay + LONGEST_GAP_DAYS; day += 1) {
    const found = firstOf(expression, zone, day, afterMs);
    if (found !== null) {
      // A time that a gap has moved past midnight may be later than the first one of the next day.
      const overtaking = firstOf(expression, zone, day + 1, afterMs);
      return new Date(overtaking === null ? found : Math.min(found, overtaking));
    }
  }
  throw new RangeError(`"${expression.text}" has no occurrence within forty years`);
}

/**
 * Returns the due instants in (`after`, `until`], ascending, or the first `limit` of them. Excludes those
 * whose local day, before any move by a gap, is an excluded day.
 */
export function occurrencesBetween(
  expression: CronExpression,
  zone: TimeZone,
  after: Date,
  until: Date,
  { limit = Infinity, excludedDays }: { limit?: number | undefined; excludedDays?: ReadonlySet<number> } = {},
): Date[] {
  const [afterMs, untilMs] = [after.getTime(), until.getTime()];
  const found = new Set<number>();
  let lastDay = localDay(zone, untilMs) + 1;
  for (let day = localDay(zone, afterMs) - 1; day <= lastDay; day += 1) {
    if (excludedDays?.has(day)) continue;
    for (const instantMs of instantsOfDay(expression, zone, day)) {
      if (instantMs > afterMs && instantMs <= untilMs) found.add(instantMs);
    }
    // The next day still counts: a time that a gap has moved past midnight may be later than one of that day.
    if (found.size >= limit && lastDay > day + 1) lastDay = day + 1;
  }
  const ascending = [...found].sort((left, right) => left - right);
  return ascending.slice(0, limit).map((instantMs) => new Date(instantMs));
}

/**
 * Returns an upper bound of the occurrences in any span of `days` days, in any zone. A span touches one more
 * local day; two further days cover hours that occur twice, and times that a gap has moved into the span.
 */
export function mostOccurrences({ hours, minutes }: CronExpression, days: number): number {
  return (days + 3) * hours.length * minutes.length;
}

/**
 * Counts the due instants in (`after`, `until`], with the same exclusions as `occurrencesBetween`. Counts
 * whole days without listing them.
 */
export function countOccurrences(
  expression: CronExpression,
  zone: TimeZone,
  after: Date,
  until: Date,
  excludedDays?: ReadonlySet<number>,
): number {
  const [afterMs, untilMs] = [after.getTime(), until.getTime()];
  const single = new Set<number>();
  let count = 0;
  for (let day = localDay(zone, afterMs) - 1; day <= localDay(zone, untilMs) + 1; day += 1) {
    if (!isDueOn(expression, day) || excludedDays?.has(day)) continue;
    const offsetMs = constantOffsetMs(zone, day);
    const midnightMs = day * DAY_MS - (offsetMs ?? 0);
    if (offsetMs !== null && midnightMs > afterMs && midnightMs + DAY_MS <= untilMs) {
      count += expression.hours.length * expression.minutes.length;
      continue;
    }
    for (const instantMs of instantsOfDay(expression, zone, day)) {
      if (instantMs > afterMs && instantMs <= untilMs) single.add(instantMs);
    }
  }
  return count + single.size;
}

/** Returns the last due instant at or before `until`, or null if there is none in the forty years before. */
export function findLatestOccurrence(expression: CronExpression, zone: TimeZone, until: Date): Date | null {
  const untilMs = until.getTime();
  const lastDay = localDay(zone, untilMs);
  for (let day = lastDay; day >= lastDay - LONGEST_GAP_DAYS; day -= 1) {
    // Includes the day before: a gap may have moved its last time past those of this day.
    const candidates = [day, day - 1].flatMap((each) => [...instantsOfDay(expression, zone, each)]);
    const due = candidates.filter((instantMs) => instantMs <= untilMs);
    if (due.length > 0) return new Date(due.reduce((latest, each) => Math.max(latest, each)));
  }
  return null;
}

/** Returns the local day in the zone, as days since 1970-01-01. */
function localDay(zone: TimeZone, instantMs: number): number {
  return Math.floor((instantMs + zone.offsetMsAt(instantMs)) / DAY_MS);
}

function isDueOn(expression: CronExpression, day: number): boolean {
  const date = new Date(day * DAY_MS);
  return matchesDay(expression, {
    month: date.getUTCMonth() + 1,
    dayOfMonth: date.getUTCDate(),
    dayOfWeek: date.getUTCDay(),
  });
}

/**
 * Returns the offset of a day, or null if a transition is close enough to affect one of its wall-clock times.
 */
function constantOffsetMs(zone: TimeZone, day: number): number | null {
  const before = zone.offsetMsAt((day - 1) * DAY_MS);
  return before === zone.offsetMsAt((day + 2) * DAY_MS) ? before : null;
}

function firstOf(expression: CronExpression, zone: TimeZone, day: number, afterMs: number): number | null {
  if (!isDueOn(expression, day)) return null;
  const offsetMs = constantOffsetMs(zone, day);
  if (offsetMs !== null) {
    const midnightMs = day * DAY_MS - offsetMs;
    for (const hour of expression.hours) {
      const hourMs = midnightMs + hour * HOUR_MS;
      if (hourMs + HOUR_MS <= afterMs) continue;
      for (const minute of expression.minutes) {
        if (hourMs + minute * MINUTE_MS > afterMs) return hourMs + minute * MINUTE_MS;
      }
    }
    return null;
  }
  let first: number | null = null;
  for (const instantMs of instantsOfDay(expression, zone, day)) {
    if (instantMs > afterMs && (first === null || instantMs < first)) first = instantMs;
  }
  return first;
}

function* instantsOfDay(expression: CronExpression, zone: TimeZone, day: number): Generator<number> {
  if (!isDueOn(expression, day)) return;
  const offsetMs = constantOffsetMs(zone, day);
  const isElapsedTime = expression.hours.length === HOURS_PER_DAY;
  for (const hour of expression.hours) {
    for (const minute of expression.minutes) {
      const wallMs = day * DAY_MS + hour * HOUR_MS + minute * MINUTE_MS;
      if (offsetMs !== null) yield wallMs - offsetMs;
      else if (isElapsedTime) yield* instantsOfWallTime(zone, wallMs);
      else yield instantOfWallTime(zone, wallMs);
    }
  }
}
