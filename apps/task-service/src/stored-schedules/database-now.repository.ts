import type { EntityManager } from 'typeorm';

/**
 * Returns the database's current time, to the millisecond. `now()` is the start of the transaction: after a
 * wait for a lock it is earlier than the changes of the transaction that held the lock.
 */
export async function databaseNow(manager: EntityManager): Promise<Date> {
  const rows = await manager.query<{ now: Date }[]>('SELECT clock_timestamp()::timestamptz(3) AS now');
  if (!rows[0]) throw new Error('the database returned no time');
  return rows[0].now;
}
