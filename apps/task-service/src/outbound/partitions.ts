import { createHash } from 'node:crypto';

/** Partitions of the outbox: what one partition holds is published by one replica at a time. */
export const PARTITION_COUNT = 16;

/** The partition of a facility, 0 to 15: the same on every replica and release, so that a facility's events stay in order. */
export function partitionOf(facilityId: number): number {
  return createHash('sha256').update(String(facilityId)).digest().readUInt32BE(0) % PARTITION_COUNT;
}
