import type { EntityManager } from 'typeorm';

/** The database's time of this transaction: replicas decide by it, never by their own clocks. */
export async function databaseNow(manager: EntityManager): Promise<Date> {
  const rows = await manager.query<{ now: Date }[]>('SELECT now() AS now');
  if (!rows[0]) throw new Error('the database gave no time');
  return rows[0].now;
}
