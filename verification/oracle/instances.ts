/**
 * The bounds within which a schedule must or may have instances. In ms since 1970, by clocks that differ by
 * `toleranceMs` at most.
 */
export interface InstanceBounds {
  /** The request to create the schedule. No instance due earlier may exist. */
  readonly requestedAtMs: number;
  /**
   * The acknowledgement of the schedule's creation, or its last resumption. Instances due later must exist.
   * Null: no instance has to exist, because the schedule was paused or removed, or its creation was never
   * acknowledged.
   */
  readonly activeSinceMs: number | null;
  /** The horizon of the last generation. Every instance due up to this instant must exist. */
  readonly generatedUntilMs: number;
  /** The horizon of a generation at the end of the run. No instance due later may exist. */
  readonly latestMs: number;
  readonly toleranceMs: number;
}

/** Differences between the expected and the stored instances of one schedule. */
export interface InstanceDifference {
  readonly missing: readonly number[];
  /**
   * Due at an instant at which the schedule is not due, or before it was requested, or beyond the horizon.
   */
  readonly wrong: readonly number[];
}

/**
 * Compares the due instants of a schedule with the due times of its instances.
 * @param due ascending
 */
export function compareInstances(
  due: readonly number[],
  found: readonly number[],
  bounds: InstanceBounds,
): InstanceDifference {
  const { requestedAtMs, activeSinceMs, generatedUntilMs, latestMs, toleranceMs } = bounds;
  const [stored, allowed] = [new Set(found), new Set(due)];
  const mustExist = (atMs: number): boolean =>
    activeSinceMs !== null && atMs > activeSinceMs + toleranceMs && atMs <= generatedUntilMs - toleranceMs;
  const mayExist = (atMs: number): boolean =>
    allowed.has(atMs) && atMs > requestedAtMs - toleranceMs && atMs <= latestMs + toleranceMs;
  return {
    missing: due.filter((atMs) => mustExist(atMs) && !stored.has(atMs)),
    wrong: found.filter((atMs) => !mayExist(atMs)),
  };
}
