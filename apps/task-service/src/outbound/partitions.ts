import { createHash } from 'node:crypto';

/** Partitions of the outbox: what one partition holds is published by one replica at a time. */
export const PARTITION_COUNT = 16;

/** The partition of a facility, 0 to 15: the same on every replica and release, so that a facility's events stay in order. */
export function partitionOf(facilityId: number): number {
  return createHash('sha256').update(String(facilityId)).digest().readUInt32BE(0) % PARTITION_COUNT;
}

/** Which partition the relay takes next: the one that has waited longest, none twice at a time. */
export class PartitionQueue {
  private readonly wanted = new Set<number>();
  private readonly underWay = new Set<number>();

  /** A partition that is under way stays wanted: that pass may have selected its batch already. */
  want(partition: number): void {
    this.wanted.add(partition);
  }

  /** The partition of the next pass, now under way; null when there is nothing to do. */
  take(): number | null {
    for (const partition of this.wanted) {
      if (this.underWay.has(partition)) continue;
      this.wanted.delete(partition);
      this.underWay.add(partition);
      return partition;
    }
    return null;
  }

  /** Ends a pass. */
  release(partition: number): void {
    this.underWay.delete(partition);
  }
}
