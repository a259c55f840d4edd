/** The longest that a refusal is held back. Hashes that take longer can be told from their time. */
const LONGEST_MS = 2_000;
/** Stores use a handful of costs. */
const MAX_COSTS = 1_000;

/** How long the slowest kind of legacy hash takes here, learnt from logins. An account whose hash has many iterations takes longer to refuse
 *  than an unknown user, so every refusal waits that long, by a timer rather than by work. Each replica learns for itself: the first refusal
 *  of a slow account after a start can still be told, and those that follow cannot. */
export class SlowestHash {
  private readonly shortestMs = new Map<string, number>();

  /** The shortest of the times of one cost is what it costs; longer ones were spent waiting for a processor. */
  record(cost: string, tookMs: number): void {
    const known = this.shortestMs.get(cost);
    if (known === undefined ? this.shortestMs.size < MAX_COSTS : tookMs < known)
      this.shortestMs.set(cost, tookMs);
  }

  get ms(): number {
    return Math.min(LONGEST_MS, Math.max(0, ...this.shortestMs.values()));
  }
}
