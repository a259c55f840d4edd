import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';

/** The pool of pg where TypeORM's PostgreSQL driver keeps it; undefined before it has connected and after it has closed. */
export function findPool(dataSource: DataSource): Pool | undefined {
  return (dataSource.driver as unknown as { master: Pool | undefined }).master;
}
