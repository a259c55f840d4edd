import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findRunRecord, isSupervised, sweepLeftovers } from '#platform/run-record.ts';

const POLL_MS = 250;

/** The run record of the `nx serve` that stands in for a service of the platform; there is one while it runs. */
export function servingRecord(stateFolder: string, service: string): string {
  return join(stateFolder, `serve-${service}.json`);
}

/** True while some `nx serve` stands in for this program. */
export function isServed(stateFolder: string, service: string): boolean {
  const record = findRunRecord(servingRecord(stateFolder, service));
  return record !== null && isSupervised(record);
}

/** Waits for the end of the `nx serve` of this program, and of whatever it has left running. */
export async function servingEnded(stateFolder: string, service: string): Promise<void> {
  while (isServed(stateFolder, service)) await delay(POLL_MS);
  await sweepLeftovers(servingRecord(stateFolder, service));
}
