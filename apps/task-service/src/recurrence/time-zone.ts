import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '@platform/time';

/** Offsets of one IANA zone. Caches the transitions of the requested years. */
export interface TimeZone {
  readonly name: string;
  /** Returns the milliseconds to add to UTC for the zone's wall clock at this instant. */
  offsetMsAt(instantMs: number): number;
}

/** The name is not an IANA time zone known to this runtime. */
export class TimeZoneError extends Error {
  override readonly name = 'TimeZoneError';
}

const TIME_ZONE_MAX_LENGTH = 64;
const zones = new Map<string, TimeZone>();
const ZONE_CACHE_LIMIT = 700;

/**
 * Returns the zone of an IANA name such as `Europe/Berlin` or `UTC`. Fixed offsets (`+02:00`) are rejected:
 * they are not IANA zones and have no daylight saving.
 * @throws {TimeZoneError} for an unknown name.
 */
export function timeZone(name: string): TimeZone {
  const known = zones.get(name);
  if (known) return known;
  const zone = createZone(name);
  if (zones.size >= ZONE_CACHE_LIMIT) zones.delete(zones.keys().next().value as string);
  zones.set(name, zone);
  return zone;
}

/**
 * Returns the instants at which the zone's clocks show `wallMs` (the wall time read as UTC), ascending:
 * usually one, none inside a gap, two where clocks went back.
 */
export function instantsOfWallTime(zone: TimeZone, wallMs: number): number[] {
  const offsets = new Set([zone.offsetMsAt(wallMs - DAY_MS), zone.offsetMsAt(wallMs + DAY_MS)]);
  return [...offsets]
    .map((offsetMs) => wallMs - offsetMs)
    .filter((instantMs) => instantMs + zone.offsetMsAt(instantMs) === wallMs)
    .sort((left, right) => left - right);
}

/**
 * Returns the one instant of a wall time: its first pass, or, inside a gap, the instant that is later by the
 * length of the gap.
 */
export function instantOfWallTime(zone: TimeZone, wallMs: number): number {
  return instantsOfWallTime(zone, wallMs)[0] ?? wallMs - zone.offsetMsAt(wallMs - DAY_MS);
}

const CALENDAR_DATE = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Returns the first instant at which a schedule may be due: midnight in the zone for a calendar date
 * (`2026-03-01`), otherwise the given instant. The text must be a valid ISO 8601 date or instant.
 */
export function startInstant(startDate: string, zone: TimeZone): Date {
  if (!CALENDAR_DATE.test(startDate)) return new Date(startDate);
  return new Date(instantOfWallTime(zone, Date.parse(`${startDate}T00:00:00Z`)));
}

/**
 * Returns the last instant at which a schedule may be due: for a calendar date, the last millisecond of that
 * day in the zone; otherwise the given instant.
 */
export function endInstant(endDate: string, zone: TimeZone): Date {
  if (!CALENDAR_DATE.test(endDate)) return new Date(endDate);
  return new Date(instantOfWallTime(zone, Date.parse(`${endDate}T00:00:00Z`) + DAY_MS) - 1);
}

function createZone(name: string): TimeZone {
  const format = createFormat(name);
  const years = new Map<number, YearOffsets>();
  return {
    name,
    offsetMsAt(instantMs) {
      const year = new Date(instantMs).getUTCFullYear();
      let offsets = years.get(year);
      if (!offsets) {
        offsets = yearOffsets(format, year);
        years.set(year, offsets);
      }
      let offsetMs = offsets.startMs;
      for (const transition of offsets.transitions) {
        if (transition.atMs > instantMs) break;
        offsetMs = transition.offsetMs;
      }
      return offsetMs;
    },
  };
}

function createFormat(name: string): Intl.DateTimeFormat {
  if (name.length > TIME_ZONE_MAX_LENGTH || !/^[A-Za-z]/.test(name)) throw new TimeZoneError(UNKNOWN_ZONE);
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' });
  } catch (error) {
    throw new TimeZoneError(UNKNOWN_ZONE, { cause: error });
  }
}

const UNKNOWN_ZONE = 'is not an IANA time zone';

interface YearOffsets {
  readonly startMs: number;
  readonly transitions: readonly { readonly atMs: number; readonly offsetMs: number }[];
}

/**
 * Distance between samples of the offset. No zone has changed its offset twice within six days since 2000. A
 * sample costs 1.5 µs, and a request needs the samples of up to eleven years.
 */
const SAMPLE_MS = 3 * DAY_MS;

/** Samples the offsets of a year, and bisects each change to the second. */
function yearOffsets(format: Intl.DateTimeFormat, year: number): YearOffsets {
  const startMs = Date.UTC(year, 0, 1);
  const endMs = Date.UTC(year + 1, 0, 1);
  const first = measureOffsetMs(format, startMs);
  const transitions: { atMs: number; offsetMs: number }[] = [];
  let before = { atMs: startMs, offsetMs: first };
  while (before.atMs < endMs) {
    const atMs = Math.min(before.atMs + SAMPLE_MS, endMs);
    const offsetMs = measureOffsetMs(format, atMs);
    if (offsetMs !== before.offsetMs) {
      transitions.push({ atMs: bisect(format, before.atMs, atMs, before.offsetMs), offsetMs });
    }
    before = { atMs, offsetMs };
  }
  return { startMs: first, transitions };
}

function bisect(format: Intl.DateTimeFormat, fromMs: number, toMs: number, offsetBeforeMs: number): number {
  let low = fromMs;
  let high = toMs;
  while (high - low > SECOND_MS) {
    const middle = low + Math.floor((high - low) / 2 / SECOND_MS) * SECOND_MS;
    if (measureOffsetMs(format, middle) === offsetBeforeMs) low = middle;
    else high = middle;
  }
  return high;
}

/**
 * Parses the offset from e.g. `7/1/2026, GMT+02:00`. Drops seconds, which no zone has had for decades: cron
 * works in minutes.
 */
function measureOffsetMs(format: Intl.DateTimeFormat, instantMs: number): number {
  const match = /GMT(?:([+-])(\d{2}):(\d{2}))?/.exec(format.format(instantMs));
  if (!match) throw new RangeError('the runtime returned no offset');
  const [, sign, hours = '0', minutes = '0'] = match;
  const offsetMs = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS;
  return sign === '-' ? -offsetMs : offsetMs;
}
