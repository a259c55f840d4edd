import type { EntityManager } from 'typeorm';

/** First key of the relay's advisory locks; the lane is the second. Any fixed number that nothing else uses. */
const RELAY_LOCK_CLASS = 0x7461_736b;

/** The server ends a relay's transaction that stands still for longer: a frozen replica must not keep its lane. */
const FROZEN_RELAY_TIMEOUT_MS = 30_000;

const ACQUIRE = `
  SELECT pg_try_advisory_xact_lock($1, $2) AS acquired,
    set_config('idle_in_transaction_session_timeout', $3, true)`;

/** Takes the lane for this transaction, so that one replica at a time publishes it and keeps its order. The lock goes
 *  with the transaction or the connection, so a dead replica holds nothing. False when another replica has it. */
export async function acquireLane(manager: EntityManager, lane: number): Promise<boolean> {
  const rows: { acquired: boolean }[] = await manager.query(ACQUIRE, [
    RELAY_LOCK_CLASS,
    lane,
    String(FROZEN_RELAY_TIMEOUT_MS),
  ]);
  return rows[0]?.acquired === true;
}
