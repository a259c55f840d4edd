import type { Clock } from '@platform/time';

/** Buckets known to be empty for a while yet. Nothing refills a bucket but time, so no other replica needs to be asked, and a
 *  flood of requests costs the database nothing. */
export class RefusedBuckets {
  private readonly untilMs = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly capacity = 10_000,
  ) {}

  /** Seconds for which the bucket stays empty; null when that is not known. */
  waitSeconds(bucket: string): number | null {
    const untilMs = this.untilMs.get(bucket);
    if (untilMs === undefined) return null;
    const waitMs = untilMs - this.clock.monotonicMs();
    if (waitMs > 0) return waitMs / 1_000;
    this.untilMs.delete(bucket);
    return null;
  }

  remember(bucket: string, waitSeconds: number): void {
    // The oldest go first: they are the likeliest to be over, and forgetting one costs a question, no more.
    if (this.untilMs.size >= this.capacity) this.untilMs.delete(this.untilMs.keys().next().value!);
    this.untilMs.delete(bucket);
    this.untilMs.set(bucket, this.clock.monotonicMs() + waitSeconds * 1_000);
  }
}
