import { DAY_MS } from '@platform/time';
import {
  countDue,
  dueBetween,
  hasEnded,
  isEvaluable,
  type Recurrence,
  RecurrenceError,
  recurrenceOf,
} from '../schedules/recurrence';
import type { GeneratingSchedule } from '../schedules/schedules.repository';

/** Of one run of generation. All by the database's clock. */
export interface GenerationWindow {
  readonly now: Date;
  /** How far ahead instances are wanted. */
  readonly until: Date;
  /** What should have been generated before this is not made up for. */
  readonly earliest: Date;
  /**
   * Nothing that was due until then is generated: no business unit held the facility active. Null: it always
   * was.
   */
  readonly activeSince?: Date | null;
}

/** What generation does for one schedule. */
export interface GenerationPlan {
  readonly scheduleId: string;
  readonly dueInstants: readonly Date[];
  /** The calendar has changed: instances to come that are on its dates are withdrawn. */
  readonly isCalendarStale: boolean;
  readonly generatedUntil: Date;
  readonly calendarRevision: number | null;
  /** Its `endDate` has passed, and everything up to it is generated. */
  readonly hasEnded: boolean;
  /** Occurrences too old to be made up for. */
  readonly skipped: number;
}

/** A schedule that cannot be evaluated. */
interface FailedSchedule {
  readonly scheduleId: string;
  readonly error: string;
}

/** What a run does. A schedule that cannot be evaluated is no reason to leave out the others. */
export interface GenerationPlans {
  readonly plans: GenerationPlan[];
  readonly failed: FailedSchedule[];
  /** False: another run is needed. */
  readonly isComplete: boolean;
}

/**
 * Plans in the order of the schedules, of `room` instances at most. Schedules with the same recurrence and
 * span, the rule within a facility, are computed once.
 */
export function planGeneration(
  schedules: readonly GeneratingSchedule[],
  window: GenerationWindow,
  room: number,
): GenerationPlans {
  const plans: GenerationPlan[] = [];
  const failed: FailedSchedule[] = [];
  const planned = new PlannedBefore(window, room);
  let left = room;
  for (const schedule of schedules) {
    if (left <= 0) break;
    try {
      const plan = planOne(schedule, window, { planned, left });
      left -= plan.dueInstants.length;
      plans.push(plan);
    } catch (error) {
      // Whatever keeps one schedule from being evaluated is that schedule's error.
      const { scheduleId } = schedule;
      failed.push({ scheduleId, error: error instanceof Error ? error.message : String(error) });
    }
  }
  return { plans, failed, isComplete: left > 0 };
}

/** How many instances the schedules want up to the window's end, however many a run may create. */
export function countPlanned(schedules: readonly GeneratingSchedule[], window: GenerationWindow): number {
  const planned = new PlannedBefore(window, 0);
  let count = 0;
  for (const schedule of schedules) {
    try {
      const from = startOf(schedule, window);
      const after = from < window.earliest ? window.earliest : from;
      count += planned.count(schedule, after);
    } catch (error) {
      // It is not generated at all.
      if (!(error instanceof RecurrenceError)) throw error;
    }
  }
  return count;
}

/** The window and nearer ends of it, each half as far as the one before, down to a day. */
export function shorterWindows(window: GenerationWindow): GenerationWindow[] {
  const nowMs = window.now.getTime();
  const windows: GenerationWindow[] = [];
  for (let spanMs = window.until.getTime() - nowMs; spanMs >= DAY_MS; spanMs /= 2)
    windows.push({ ...window, until: new Date(Math.round(nowMs + spanMs)) });
  return windows;
}

/** The schedules for which a run up to the window's end has something to do. */
export function openSchedules(
  schedules: readonly GeneratingSchedule[],
  { until }: GenerationWindow,
): GeneratingSchedule[] {
  return schedules.filter(({ isCalendarStale, generatedUntil }) => isCalendarStale || generatedUntil < until);
}

/** Generates nothing and notes, for those whose calendar has changed, that it was followed: a later run that
 *  has room looks again at all they have to come. Without this each run would begin with them anew. One that
 *  cannot be evaluated follows nothing. */
export function planNothing(
  schedules: readonly GeneratingSchedule[],
  window: GenerationWindow,
): GenerationPlans {
  const stale = schedules.filter((schedule) => schedule.isCalendarStale && isEvaluable(schedule));
  const plans = stale.map((schedule): GenerationPlan => ({
    scheduleId: schedule.scheduleId,
    calendarRevision: schedule.calendarRevision,
    isCalendarStale: true,
    dueInstants: [],
    generatedUntil: startOf(schedule, window),
    hasEnded: false,
    skipped: 0,
  }));
  return { plans, failed: [], isComplete: true };
}

/** Where generation goes on. By another calendar everything to come is looked at again. */
export function startOf(
  { isCalendarStale, generatedUntil }: GeneratingSchedule,
  { now, activeSince }: GenerationWindow,
): Date {
  const from = isCalendarStale && now < generatedUntil ? now : generatedUntil;
  return activeSince && activeSince > from ? activeSince : from;
}

function planOne(
  schedule: GeneratingSchedule,
  window: GenerationWindow,
  { planned, left }: { planned: PlannedBefore; left: number },
): GenerationPlan {
  const { scheduleId, calendarRevision, isCalendarStale } = schedule;
  const from = startOf(schedule, window);
  const recurrence = planned.recurrence(schedule);
  const due = planned.dueInstants(schedule, from < window.earliest ? window.earliest : from);
  const dueInstants = due.slice(0, left);
  const isWhole = dueInstants.length < left;
  return {
    scheduleId,
    calendarRevision,
    isCalendarStale,
    dueInstants,
    generatedUntil: isWhole ? window.until : (dueInstants.at(-1) ?? window.until),
    hasEnded: isWhole && hasEnded(recurrence, window.now),
    skipped: countDue(recurrence, from, window.earliest),
  };
}

/** What was computed for another schedule of the run. */
class PlannedBefore {
  private readonly recurrences = new Map<string, Recurrence>();
  private readonly due = new Map<string, Date[]>();
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly window: GenerationWindow,
    private readonly room: number,
  ) {}

  recurrence(schedule: GeneratingSchedule): Recurrence {
    const key = recurrenceKey(schedule);
    let recurrence = this.recurrences.get(key);
    if (!recurrence) this.recurrences.set(key, (recurrence = recurrenceOf(schedule)));
    return recurrence;
  }

  dueInstants(schedule: GeneratingSchedule, after: Date): Date[] {
    const key = `${recurrenceKey(schedule)} ${String(after.getTime())}`;
    let dueInstants = this.due.get(key);
    if (!dueInstants) {
      dueInstants = dueBetween(this.recurrence(schedule), after, this.window.until, this.room);
      this.due.set(key, dueInstants);
    }
    return dueInstants;
  }

  count(schedule: GeneratingSchedule, after: Date): number {
    const key = `${recurrenceKey(schedule)} ${String(after.getTime())}`;
    let count = this.counts.get(key);
    if (count === undefined)
      this.counts.set(key, (count = countDue(this.recurrence(schedule), after, this.window.until)));
    return count;
  }
}

function recurrenceKey({ schedule, timeZone, startDate, endDate, calendarId }: GeneratingSchedule): string {
  return JSON.stringify([schedule, timeZone, startDate, endDate, calendarId]);
}
