/** A trigger that is later than this fires once, for the latest occurrence that it missed. */
const MISFIRE_AFTER_MS = 5_400_000;

/** What a trigger has to do, computed from its occurrences and clocks alone. */
export interface ExpectedFires {
  /** Occurrences each of which has its own fire. */
  readonly due: readonly number[];
  /** Occurrences of which any number may have a fire: they came while triggers were being paused. */
  readonly allowed: ReadonlySet<number>;
}

/** When a trigger was there and when it was paused, by the database's clock. */
export interface TriggerLife {
  /** It had been waiting for this occurrence when it was put into the store. */
  readonly firstDueAtMs: number;
  readonly plantedAtMs: number;
  /** All that was due until then has to have fired. */
  readonly watchedUntilMs: number;
  readonly pausedAtMs: number;
}

/**
 * The fires of a trigger. Every occurrence fires, oldest first; one that was more than 90 minutes late when
 * the trigger was planted makes that a misfire, and the latest occurrence stands for all that were missed.
 * @param occurrences of its expression, ascending, without holes from `firstDueAtMs` to `pausedAtMs`
 */
export function expectedFires(occurrences: readonly number[], life: TriggerLife): ExpectedFires {
  const { firstDueAtMs, plantedAtMs, watchedUntilMs, pausedAtMs } = life;
  const since = occurrences.filter((atMs) => atMs >= firstDueAtMs && atMs <= pausedAtMs);
  const isMisfire = plantedAtMs - firstDueAtMs > MISFIRE_AFTER_MS;
  const latestMissed = since.findLast((atMs) => atMs <= plantedAtMs);
  const fired = isMisfire ? since.filter((atMs) => atMs >= (latestMissed ?? firstDueAtMs)) : since;
  return {
    due: fired.filter((atMs) => atMs <= watchedUntilMs),
    allowed: new Set(fired.filter((atMs) => atMs > watchedUntilMs)),
  };
}
