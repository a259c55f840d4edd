import { DataSource, MigrationExecutor } from 'typeorm';
import type { Migration, QueryRunner } from 'typeorm';
import { STATEMENT_LOCK_TIMEOUT_MS, withLockRetry } from './lock-retry';
import type { LockWaiting } from './lock-retry';
import type { PostgresOptions } from './postgres-options';

/**
 * Applies pending migrations, one after the other. Each runs in a transaction unless its class says
 * `transaction = false`; such a migration must be resumable, as `createIndexConcurrently` is. A statement
 * waits at most 1 s for a lock. Index builds and drops may wait 10 min, because no request queues behind
 * them. When a lock is refused, the transaction is rolled back and the migration is tried again.
 * @returns the names of the migrations that it applied
 * @throws {CommandError} when a migration does not get its locks in time; earlier ones stay applied
 */
export async function applyPending(options: PostgresOptions, waiting: LockWaiting): Promise<string[]> {
  const dataSource = await new DataSource(options).initialize();
  const runner = dataSource.createQueryRunner();
  try {
    // Applies to statements outside transactions.
    await runner.query(`SET lock_timeout = ${String(STATEMENT_LOCK_TIMEOUT_MS)}`);
    const executor = new MigrationExecutor(dataSource, runner);
    const applied: string[] = [];
    for (const migration of await executor.getPendingMigrations()) {
      const attempt = (): Promise<void> => apply(executor, runner, migration);
      await withLockRetry(migration.name, attempt, waiting);
      applied.push(migration.name);
    }
    return applied;
  } finally {
    await runner.release();
    await dataSource.destroy();
  }
}

async function apply(executor: MigrationExecutor, runner: QueryRunner, migration: Migration): Promise<void> {
  if (migration.instance?.transaction === false) {
    await executor.executeMigration(migration);
    return;
  }
  await runner.startTransaction();
  try {
    // Repeated per transaction: behind a pooler, the session may be another than the one set above.
    await runner.query(`SET LOCAL lock_timeout = ${String(STATEMENT_LOCK_TIMEOUT_MS)}`);
    await executor.executeMigration(migration);
    await runner.commitTransaction();
  } catch (error) {
    if (!runner.isReleased) await runner.rollbackTransaction();
    throw error;
  }
}
