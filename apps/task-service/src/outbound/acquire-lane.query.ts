import type { EntityManager } from 'typeorm';

/** First key of the relay's advisory locks; the lane is the second. Any fixed number that nothing else uses. */
const RELAY_LOCK_CLASS = 0x7461_736b;

const ACQUIRE = `SELECT pg_try_advisory_xact_lock($1, $2) AS acquired`;

/** Takes the lane for this transaction, so that one replica at a time publishes it and keeps its order. The lock goes
 *  with the transaction or the connection, so a dead replica holds nothing, and a
 *  frozen one no longer than the server bears a transaction that stands still (libs/database: 30 s). False when another replica has it. */
export async function acquireLane(manager: EntityManager, lane: number): Promise<boolean> {
  const rows: { acquired: boolean }[] = await manager.query(ACQUIRE, [RELAY_LOCK_CLASS, lane]);
  return rows[0]?.acquired === true;
}
