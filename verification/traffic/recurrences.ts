import { randomUUID } from 'node:crypto';
import type { ClockChange, Zones } from '#verification/oracle/zones.ts';
import type { LoadContext } from './context.ts';
import type { ScheduleKind } from './journal.ts';

const DAY_MS = 86_400_000;
/**
 * Generation horizon. It is long enough to contain a clock change in each direction in some zone, whatever
 * the date of the run: the longest gap is 204 days, from April in the south to October in the north.
 */
export const HORIZON_DAYS = 215;
/**
 * Variables of task-service in a run. Workers create many schedules at few facilities, so the limit is
 * raised.
 */
export const TASK_VARIABLES = {
  SCHEDULES_PER_FACILITY: '1000000',
  GENERATION_HORIZON_DAYS: String(HORIZON_DAYS),
} as const;

/**
 * The zones of schedules and triggers. Their offsets are whole, half and quarter hours. Their clock changes
 * are one hour, half an hour, or none.
 */
export const ZONES = [
  'UTC',
  'Europe/Berlin',
  'Europe/London',
  'America/New_York',
  'America/Sao_Paulo',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'Australia/Adelaide',
  'Australia/Lord_Howe',
];

/** Zones in both hemispheres whose clocks change by one hour at 1 or 2 o'clock. */
const HOUR_ZONES = ['Europe/Berlin', 'America/New_York', 'Australia/Adelaide'];

/**
 * Recurrences of all kinds that have instances within the horizon. Frequent ones have an early end date, so
 * that no schedule has more than a few hundred instances.
 */
export function scheduleKinds(zones: Zones, calendar: Calendar, horizonDays: number): ScheduleKind[] {
  // A shorter horizon may contain no clock change.
  return horizonDays < HORIZON_DAYS
    ? everyMonth(calendar)
    : [...everyMonth(calendar), ...clockChanges(zones)];
}

function everyMonth(calendar: Calendar): ScheduleKind[] {
  const inDays = (days: number): string => dateOf(Date.now() + days * DAY_MS);
  return [
    { schedule: '0 6 * * *', timeZone: 'UTC', endDate: inDays(30) },
    { schedule: '15 1,13 * * MON-FRI', timeZone: 'America/New_York', endDate: inDays(30) },
    { schedule: '0 */6 * * *', timeZone: 'Asia/Kolkata', startDate: inDays(5), endDate: inDays(12) },
    // Month ends, days of the month, and the combination of a day of the month with a day of the week.
    { schedule: '45 23 28-31 * *', timeZone: 'Europe/London' },
    { schedule: '0 9 1,15 * *', timeZone: 'Asia/Kathmandu' },
    { schedule: '20 4 13 * FRI', timeZone: 'America/Sao_Paulo' },
    { schedule: '0 7 * * *', timeZone: 'Europe/London', endDate: inDays(30), ...calendar },
  ];
}

/** Recurrences in the hours that clock changes skip in spring and repeat in autumn. */
function clockChanges(zones: Zones): ScheduleKind[] {
  return [
    ...(['forward', 'back'] as const).flatMap((direction) => [
      aroundClockChange(zones, '30 1,2 * * *', HOUR_ZONES, direction),
      aroundClockChange(zones, '30 * * * *', HOUR_ZONES, direction),
    ]),
    aroundClockChange(zones, '15,45 1,2 * * *', ['Australia/Lord_Howe']),
  ];
}

/**
 * A schedule that is due each minute and starts at the horizon. It gains one instance per minute, provided
 * that its facility's generation runs each minute.
 */
export function atHorizon(): ScheduleKind {
  return { schedule: '* * * * *', timeZone: 'UTC', startDate: dateOf(Date.now() + HORIZON_DAYS * DAY_MS) };
}

/** A calendar of excluded dates. */
export interface Calendar {
  readonly calendarId: string;
  readonly excludedDates: readonly string[];
}

/** Creates a calendar that excludes every third day of the next 60. @throws {Error} when that fails */
export async function makeCalendar({ caller, urls, admin }: LoadContext): Promise<Calendar> {
  const excludedDates = Array.from({ length: 20 }, (_, index) =>
    dateOf(Date.now() + (3 * index + 1) * DAY_MS),
  );
  const calendarId = randomUUID();
  const { response } = await caller.persist({
    operation: 'PUT calendar',
    url: `${urls.task}/Calendars/${calendarId}`,
    token: admin.token,
    body: { name: 'Load', excludedDates },
  });
  if (response === null) throw new Error('the calendar of the load was not created');
  return { calendarId, excludedDates };
}

/**
 * A recurrence for 2 days around the next clock change, in the zone where it comes first.
 * @throws {Error} if none
 */
function aroundClockChange(
  zones: Zones,
  schedule: string,
  names: readonly string[],
  direction?: ClockChange,
): ScheduleKind {
  const change = zones.nextClockChange(names, Date.now() + 3 * DAY_MS, direction);
  if (change === null)
    throw new Error(`the clocks of ${names.join(', ')} do not change in ${HORIZON_DAYS} days`);
  const [startDate, endDate] = [dateOf(change.atMs - 2 * DAY_MS), dateOf(change.atMs + 2 * DAY_MS)];
  return { schedule, timeZone: change.timeZone, startDate, endDate };
}

function dateOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, '2026-12-25'.length);
}
