import { countOccurrences } from '../schedules/occurrences';
import { dueBetween, recurrenceOf } from '../schedules/recurrence';
import type { GeneratingSchedule } from '../schedules/schedules.repository';

/** Of one run of generation. All by the database's clock. */
export interface GenerationWindow {
  readonly now: Date;
  /** How far ahead instances are wanted. */
  readonly until: Date;
  /** What should have been generated before this is not made up for. */
  readonly earliest: Date;
}

/** What generation does for one schedule. */
export interface GenerationPlan {
  readonly scheduleId: string;
  readonly dueInstants: readonly Date[];
  /** Instants to come that stay, every other one is withdrawn: the calendar changed. Null if it did not. */
  readonly kept: readonly Date[] | null;
  readonly generatedUntil: Date;
  readonly calendarRevision: number | null;
  /** Occurrences too old to be made up for. */
  readonly skipped: number;
}

/** Plans in the order of the schedules, of `room` instances at most unless a changed calendar needs more; false in `isComplete` asks for
 *  another run. Schedules with the same recurrence and span, the rule within a facility, are computed once. */
export function planGeneration(
  schedules: readonly GeneratingSchedule[],
  window: GenerationWindow,
  room: number,
): { plans: GenerationPlan[]; isComplete: boolean } {
  const plans: GenerationPlan[] = [];
  const dueInstantsOf = remembering(window, room);
  let left = room;
  for (const schedule of schedules) {
    if (left <= 0) break;
    const { scheduleId, calendarRevision, isCalendarStale } = schedule;
    const from =
      isCalendarStale && window.now < schedule.generatedUntil ? window.now : schedule.generatedUntil;
    const due = dueInstantsOf(schedule, from < window.earliest ? window.earliest : from);
    const dueInstants = isCalendarStale ? due : due.slice(0, left);
    left -= dueInstants.length;
    plans.push({
      ...{ scheduleId, calendarRevision, dueInstants },
      kept: isCalendarStale ? dueInstants.filter((instant) => instant > window.now) : null,
      generatedUntil: left > 0 ? window.until : (dueInstants.at(-1) ?? window.until),
      skipped: from < window.earliest ? skippedOf(schedule, from, window.earliest) : 0,
    });
  }
  return { plans, isComplete: left > 0 };
}

function remembering(
  window: GenerationWindow,
  room: number,
): (schedule: GeneratingSchedule, after: Date) => Date[] {
  const known = new Map<string, Date[]>();
  return ({ schedule, timeZone, startDate, endDate, calendarId, isCalendarStale, excludedDates }, after) => {
    const key = JSON.stringify([
      schedule,
      timeZone,
      startDate,
      endDate,
      calendarId,
      isCalendarStale,
      after.getTime(),
    ]);
    let dueInstants = known.get(key);
    if (!dueInstants) {
      const recurrence = recurrenceOf({ schedule, timeZone, startDate, endDate, excludedDates });
      dueInstants = dueBetween(recurrence, after, window.until, isCalendarStale ? Infinity : room);
      known.set(key, dueInstants);
    }
    return dueInstants;
  };
}

function skippedOf(schedule: GeneratingSchedule, after: Date, until: Date): number {
  const { expression, zone } = recurrenceOf(schedule);
  return countOccurrences(expression, zone, after, until);
}
