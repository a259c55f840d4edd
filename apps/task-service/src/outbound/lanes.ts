import { createHash } from 'node:crypto';

/** Relay lanes of the message store: what one lane holds is published by one replica at a time. */
export const LANE_COUNT = 16;

/** The lane of a facility, 0 to 15: the same on every replica and release, so that a facility's events stay in order. */
export function laneOf(facilityId: number): number {
  return createHash('sha256').update(String(facilityId)).digest().readUInt32BE(0) % LANE_COUNT;
}
