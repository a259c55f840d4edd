import { DAY_MS } from '@platform/time';
import {
  countDue,
  dueBetween,
  hasEnded,
  isEvaluable,
  type Recurrence,
  RecurrenceError,
  recurrenceOf,
} from '../recurrence/recurrence';
import type { GeneratingSchedule } from '../stored-schedules/generating-schedules.repository';

/** Window of one run of generation, by the database's clock. */
export interface GenerationWindow {
  readonly now: Date;
  /** End of the window, inclusive. */
  readonly until: Date;
  /** Occurrences before this instant that were missed are not generated any more. */
  readonly earliest: Date;
  /**
   * Occurrences up to this instant are not generated, because no business unit held the facility active. Null
   * if it has always been active.
   */
  readonly activeSince?: Date | null;
}

/** Result of generation for one schedule. */
export interface GenerationPlan {
  readonly scheduleId: string;
  readonly dueInstants: readonly Date[];
  /** Whether the calendar has changed, i.e. future instances on its dates must be cancelled. */
  readonly isCalendarStale: boolean;
  readonly generatedUntil: Date;
  readonly calendarRevision: number | null;
  /** Whether the schedule's `endDate` has passed and everything up to it is generated. */
  readonly hasEnded: boolean;
  /** Number of missed occurrences before `earliest`. */
  readonly skipped: number;
}

/** A schedule that cannot be evaluated. */
interface FailedSchedule {
  readonly scheduleId: string;
  readonly error: string;
}

/** Plans of a run. A schedule that cannot be evaluated does not affect the others. */
export interface GenerationPlans {
  readonly plans: GenerationPlan[];
  readonly failed: FailedSchedule[];
  /** Whether no further run is needed. */
  readonly isComplete: boolean;
}

/**
 * Plans at most `room` instances, in the order of the schedules. Schedules with the same recurrence and
 * start, the usual case within a facility, are computed once.
 */
export function planGeneration(
  schedules: readonly GeneratingSchedule[],
  window: GenerationWindow,
  room: number,
): GenerationPlans {
  const plans: GenerationPlan[] = [];
  const failed: FailedSchedule[] = [];
  const planned = new PlanCache(window, room);
  let remaining = room;
  for (const schedule of schedules) {
    if (remaining <= 0) break;
    try {
      const plan = planOne(schedule, window, { planned, remaining });
      remaining -= plan.dueInstants.length;
      plans.push(plan);
    } catch (error) {
      // Any error of evaluating a schedule is recorded for that schedule only.
      const { scheduleId } = schedule;
      failed.push({ scheduleId, error: error instanceof Error ? error.message : String(error) });
    }
  }
  return { plans, failed, isComplete: remaining > 0 };
}

/** Counts the occurrences of the schedules up to the window's end, without the limit of a run. */
export function countPlanned(schedules: readonly GeneratingSchedule[], window: GenerationWindow): number {
  const planned = new PlanCache(window, 0);
  let count = 0;
  for (const schedule of schedules) {
    try {
      const from = startOf(schedule, window);
      const after = from < window.earliest ? window.earliest : from;
      count += planned.count(schedule, after);
    } catch (error) {
      // A schedule with an invalid recurrence has no occurrences, so it adds nothing.
      if (!(error instanceof RecurrenceError)) throw error;
    }
  }
  return count;
}

/**
 * Returns the window, then shorter ones: each spans half the time of the one before, and the last at least a
 * day.
 */
export function shorterWindows(window: GenerationWindow): GenerationWindow[] {
  const nowMs = window.now.getTime();
  const windows: GenerationWindow[] = [];
  for (let spanMs = window.until.getTime() - nowMs; spanMs >= DAY_MS; spanMs /= 2)
    windows.push({ ...window, until: new Date(Math.round(nowMs + spanMs)) });
  return windows;
}

/** Returns the schedules for which a run up to the window's end has work to do. */
export function openSchedules(
  schedules: readonly GeneratingSchedule[],
  { until }: GenerationWindow,
): GeneratingSchedule[] {
  return schedules.filter(({ isCalendarStale, generatedUntil }) => isCalendarStale || generatedUntil < until);
}

/**
 * Plans no instances. For schedules whose calendar has changed, records the new revision and moves
 * `generatedUntil` back, so that a later run with room generates their future again. Without this, each run
 * would handle the change again. Schedules that cannot be evaluated are left unchanged.
 */
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

/**
 * Returns the instant after which generation continues: where it ended, or now if the calendar has changed
 * and generation had gone further. Not before `activeSince`.
 */
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
  { planned, remaining }: { planned: PlanCache; remaining: number },
): GenerationPlan {
  const { scheduleId, calendarRevision, isCalendarStale } = schedule;
  const from = startOf(schedule, window);
  const recurrence = planned.recurrence(schedule);
  const due = planned.dueInstants(schedule, from < window.earliest ? window.earliest : from);
  const dueInstants = due.slice(0, remaining);
  const isWhole = dueInstants.length < remaining;
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

/** Caches the recurrences, due instants and counts that schedules with equal settings share in a run. */
class PlanCache {
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
