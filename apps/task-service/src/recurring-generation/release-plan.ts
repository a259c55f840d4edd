import { dueBetween, type Recurrence } from '../recurrence/recurrence';

/** Which of its future instances a schedule still wants: those at which it is due, all, or none. */
export type Wanted = Recurrence | 'all' | 'none';

/** Decision about some instances, which are identified by their due instants. */
export interface ReleasePlan {
  readonly kept: readonly Date[];
  readonly released: readonly Date[];
  /** Everything up to this instant is decided. */
  readonly end: Date;
}

/**
 * Maximum occurrences computed in one step. If a schedule has far more occurrences than instances, the step
 * ends before the last instance.
 */
const OCCURRENCES_PER_STEP = 20_000;

/** Decides about the instances due at the given instants, which ascend and are after `after`. */
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
