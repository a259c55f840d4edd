import { instantOfWallTime } from './time-zone';
import type { TimeZone } from './time-zone';

const CALENDAR_DATE = /^\d{4}-\d{2}-\d{2}$/;

/** The first instant at which a schedule may be due: a calendar date (`2026-03-01`) means its midnight in the zone, an
 *  instant means itself. The text must be a valid ISO 8601 date or instant. */
export function startInstant(startDate: string, zone: TimeZone): Date {
  if (!CALENDAR_DATE.test(startDate)) return new Date(startDate);
  return new Date(instantOfWallTime(zone, Date.parse(`${startDate}T00:00:00Z`)));
}
