import type { EntityManager } from 'typeorm';

/** First key of the relay's advisory locks; the lane is the second. Any fixed number that nothing else uses. */
const RELAY_LOCK_CLASS = 0x7461_736b;

const ACQUIRE = `SELECT lane FROM unnest($2::integer[]) AS lane WHERE pg_try_advisory_xact_lock($1, lane)`;

/** Takes those of the lanes for this transaction that no other one has, so that one replica at a time publishes a lane and keeps
 *  its order. The locks go with the transaction or the connection, so a dead replica holds nothing, and a frozen one no longer
 *  than the server bears the transaction that stands still. */
export async function acquireLanes(manager: EntityManager, lanes: readonly number[]): Promise<number[]> {
  const rows: { lane: number }[] = await manager.query(ACQUIRE, [RELAY_LOCK_CLASS, lanes]);
  return rows.map(({ lane }) => lane);
}
