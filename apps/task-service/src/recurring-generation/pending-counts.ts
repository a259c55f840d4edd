import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';

/** Smaller counts are read anew each time: 10,000 entries of an index take about a millisecond. */
const LARGE_COUNT = 10_000;
const LIFETIME_MS = SECOND_MS;
const MAX_FACILITIES = 1_000;

interface Counted {
  readonly count: number;
  /** It was counted no further. */
  readonly limit: number;
  readonly untilMs: number;
}

/**
 * Large counts of pending instances, for a second: a facility that is full is asked for over and over, and
 * each count reads up to 200,000 entries of an index.
 */
export class PendingCounts {
  private readonly counts = new Map<number, Counted>();

  constructor(private readonly clock: Pick<Clock, 'monotonicMs'>) {}

  /** @param limit as far as it has to be counted
   *  @param read counts */
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
