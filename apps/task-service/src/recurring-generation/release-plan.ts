import { dueBetween, type Recurrence } from '../schedules/recurrence';

/** Which of its instances to come a schedule still wants: those that it is due at, all of them, or none. */
export type Wanted = Recurrence | 'all' | 'none';

/** What becomes of some instances. */
export interface ReleasePlan {
  readonly kept: readonly Date[];
  readonly released: readonly Date[];
  /** Up to here everything is decided. */
  readonly end: Date;
}

/**
 * So many occurrences are looked at in one step: where a schedule is due far more often than it has
 * instances, a step ends before the last of them.
 */
const OCCURRENCES_PER_STEP = 20_000;

/** Decides about the instances due at the given instants, which ascend and come after `after`. */
export function planRelease(wanted: Wanted, after: Date, due: readonly [Date, ...Date[]]): ReleasePlan {
  const last = due.at(-1) ?? due[0];
  if (wanted === 'all') return { kept: due, released: [], end: last };
  if (wanted === 'none') return { kept: [], released: due, end: last };
  const occurrences = dueBetween(wanted, after, last, OCCURRENCES_PER_STEP);
  const isCut = occurrences.length === OCCURRENCES_PER_STEP;
  const end = (isCut ? occurrences.at(-1) : undefined) ?? last;
  const dueMs = new Set(occurrences.map((occurrence) => occurrence.getTime()));
  const decided = due.filter((instant) => instant <= end);
  return {
    kept: decided.filter((instant) => dueMs.has(instant.getTime())),
    released: decided.filter((instant) => !dueMs.has(instant.getTime())),
    end,
  };
}
