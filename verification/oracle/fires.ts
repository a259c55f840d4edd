/** Lateness of a misfire: a trigger that is later than this fires once, for the latest missed occurrence. */
const MISFIRE_AFTER_MS = 5_400_000;

/** The expected fires of a trigger, computed only from its occurrences and clocks. */
export interface ExpectedFires {
  /** Occurrences that must have exactly one fire each. */
  readonly due: readonly number[];
  /** Occurrences that may or may not have a fire: they were due while the run paused its triggers. */
  readonly allowed: ReadonlySet<number>;
}

/** The instants that decide the fires of a trigger, by the database's clock. */
export interface TriggerTimes {
  /** The trigger's next fire when it was inserted. */
  readonly firstDueAtMs: number;
  readonly plantedAtMs: number;
  /** Every occurrence due up to this instant must have fired. */
  readonly watchedUntilMs: number;
  readonly pausedAtMs: number;
}

/**
 * Computes the fires of a trigger. Every occurrence fires, oldest first. If the first occurrence was more
 * than 90 minutes late when the trigger was planted, that is a misfire: a single fire for the latest missed
 * occurrence replaces those of all missed ones.
 * @param occurrences of the trigger's expression, ascending, complete from `firstDueAtMs` to `pausedAtMs`
 */
export function expectedFires(occurrences: readonly number[], times: TriggerTimes): ExpectedFires {
  const { firstDueAtMs, plantedAtMs, watchedUntilMs, pausedAtMs } = times;
  const since = occurrences.filter((atMs) => atMs >= firstDueAtMs && atMs <= pausedAtMs);
  const isMisfire = plantedAtMs - firstDueAtMs > MISFIRE_AFTER_MS;
  const latestMissed = since.findLast((atMs) => atMs <= plantedAtMs);
  const fired = isMisfire ? since.filter((atMs) => atMs >= (latestMissed ?? firstDueAtMs)) : since;
  return {
    due: fired.filter((atMs) => atMs <= watchedUntilMs),
    allowed: new Set(fired.filter((atMs) => atMs > watchedUntilMs)),
  };
}
