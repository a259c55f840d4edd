import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';

/** Minimum count that is cached. Smaller ones are read each time: 10,000 index entries take about 1 ms. */
const LARGE_COUNT = 10_000;
const LIFETIME_MS = SECOND_MS;
const MAX_FACILITIES = 1_000;

interface Counted {
  readonly count: number;
  /** Number at which counting stopped. */
  readonly limit: number;
  readonly untilMs: number;
}

/**
 * Caches large counts of pending instances for 1 s: requests for a full facility are frequent, and each count
 * reads up to 200,000 index entries.
 */
export class PendingCounts {
  private readonly counts = new Map<number, Counted>();

  constructor(private readonly clock: Pick<Clock, 'monotonicMs'>) {}

  /**
   * Returns the number of pending instances of a facility, counted up to `limit`.
   * @param read counts them in the database
   */
  async of(facilityId: number, limit: number, read: () => Promise<number>): Promise<number> {
    const known = this.counts.get(facilityId);
    const isFresh = known !== undefined && known.untilMs > this.clock.monotonicMs();
    if (isFresh && (known.count < known.limit || known.limit >= limit)) return Math.min(known.count, limit);
    const count = await read();
    this.counts.delete(facilityId);
    if (count < LARGE_COUNT) return count;
    this.counts.set(facilityId, { count, limit, untilMs: this.clock.monotonicMs() + LIFETIME_MS });
    const [oldest] = this.counts.keys();
    if (this.counts.size > MAX_FACILITIES && oldest !== undefined) this.counts.delete(oldest);
    return count;
  }
}
