/** What decides which instances a schedule must have. In ms since 1970, by clocks that differ by
 *  `toleranceMs` at most. */
export interface ScheduleLife {
  /** It was asked for then: nothing that was due before may exist. */
  readonly askedForAtMs: number;
  /** What was due after it must exist: it had been acknowledged, or was resumed last. Null: it was paused,
   *  removed, or nobody knows. */
  readonly activeSinceMs: number | null;
  /** Every instance due until then must exist: it is the horizon of the last generation. */
  readonly generatedUntilMs: number;
  /** Beyond it none may exist: the horizon of a generation at the end of the run. */
  readonly latestMs: number;
  readonly toleranceMs: number;
}

/** Instances of one schedule by what they should be. */
export interface InstanceDifference {
  readonly missing: readonly number[];
  /** Due at an instant that is none of the schedule's, or before it was made, or too far ahead. */
  readonly wrong: readonly number[];
}

/**
 * @param due every instant at which the schedule is due, ascending
 * @param found the instants of its instances
 */
export function compareInstances(
  due: readonly number[],
  found: readonly number[],
  life: ScheduleLife,
): InstanceDifference {
  const { askedForAtMs, activeSinceMs, generatedUntilMs, latestMs, toleranceMs } = life;
  const [stored, allowed] = [new Set(found), new Set(due)];
  const mustExist = (atMs: number): boolean =>
    activeSinceMs !== null && atMs > activeSinceMs + toleranceMs && atMs <= generatedUntilMs - toleranceMs;
  const mayExist = (atMs: number): boolean =>
    allowed.has(atMs) && atMs > askedForAtMs - toleranceMs && atMs <= latestMs + toleranceMs;
  return {
    missing: due.filter((atMs) => mustExist(atMs) && !stored.has(atMs)),
    wrong: found.filter((atMs) => !mayExist(atMs)),
  };
}
