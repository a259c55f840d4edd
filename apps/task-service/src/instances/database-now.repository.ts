import type { EntityManager } from 'typeorm';

/**
 * The database's time at this moment, to the millisecond. `now()` is when the transaction began: after a wait
 * for a lock that is before what the other transaction did.
 */
export async function databaseNow(manager: EntityManager): Promise<Date> {
  const rows = await manager.query<{ now: Date }[]>('SELECT clock_timestamp()::timestamptz(3) AS now');
  if (!rows[0]) throw new Error('the database gave no time');
  return rows[0].now;
}
