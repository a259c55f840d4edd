import { DAY_MS } from '@platform/time';
import { instantOfWallTime, timeZone, TimeZoneError, type TimeZone } from '../recurrence/time-zone';
import type { ExaminedSchedule, ScheduleSpan } from './reconciliation.repository';

type Span = Omit<ScheduleSpan, 'scheduleId'>;

/**
 * Returns the spans of the dates that the schedules' calendars exclude, in the time zone of each schedule.
 * Computed once per calendar and zone.
 */
export function excludedSpans(schedules: readonly ExaminedSchedule[]): ScheduleSpan[] {
  const known = new Map<string, Span[]>();
  return schedules.flatMap((schedule) => {
    const { scheduleId, calendarId, timeZone: zoneName } = schedule;
    const key = `${String(calendarId)} ${zoneName}`;
    let spans = known.get(key);
    if (spans === undefined) known.set(key, (spans = spansOf(schedule)));
    return spans.map((span) => ({ scheduleId, ...span }));
  });
}

function spansOf({ excludedDates, timeZone: zoneName }: ExaminedSchedule): Span[] {
  const zone = zoneOf(zoneName);
  if (zone === null) return [];
  return (excludedDates ?? []).map((date) => {
    const midnightMs = Date.parse(`${date}T00:00:00Z`);
    return {
      from: new Date(instantOfWallTime(zone, midnightMs)),
      until: new Date(instantOfWallTime(zone, midnightMs + DAY_MS)),
    };
  });
}

/** Returns null for a zone that this runtime does not know; generation reports that. */
function zoneOf(name: string): TimeZone | null {
  try {
    return timeZone(name);
  } catch (error) {
    if (error instanceof TimeZoneError) return null;
    throw error;
  }
}
