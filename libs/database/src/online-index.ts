import { Logger } from '@nestjs/common';
import { SYSTEM_CLOCK } from '@platform/time';
import type { QueryRunner } from 'typeorm';
import { STATEMENT_LOCK_TIMEOUT_MS } from './lock-retry';
import { quoteIdentifier } from './postgres-options';

/** An index to build while the service runs. */
interface OnlineIndex {
  readonly schema: string;
  readonly name: string;
  readonly table: string;
  /** The part of the statement after the table's name: `(columns) WHERE …` or `USING …`. */
  readonly definition: string;
  readonly isUnique?: boolean;
}

/**
 * Maximum wait of an index build or drop for open transactions, such as a dump. Requests do not queue behind
 * it, so it may be long.
 */
const INDEX_LOCK_TIMEOUT_MS = 600_000;
const PROGRESS_MS = 10_000;

/**
 * Builds an index while others read and write the table. Only for migrations with `transaction = false`. A
 * valid index of that name is left unchanged. An INVALID one, left by an interrupted build, is dropped and
 * built again.
 */
export async function createIndexConcurrently(runner: QueryRunner, index: OnlineIndex): Promise<void> {
  const { schema, name, table, definition, isUnique = false } = index;
  const state = await indexState(runner, schema, name);
  if (state === 'valid') return;
  if (state === 'invalid') await dropIndexConcurrently(runner, schema, name);
  const kind = isUnique ? 'UNIQUE INDEX' : 'INDEX';
  const target = `${quoteIdentifier(schema)}.${quoteIdentifier(table)}`;
  await runWithLongLockTimeout(
    runner,
    `CREATE ${kind} CONCURRENTLY ${quoteIdentifier(name)} ON ${target} ${definition}`,
  );
}

/**
 * Drops an index, if it exists, while others read and write its table. Only for migrations with `transaction
 * = false`.
 */
export async function dropIndexConcurrently(
  runner: QueryRunner,
  schema: string,
  name: string,
): Promise<void> {
  await runWithLongLockTimeout(
    runner,
    `DROP INDEX CONCURRENTLY IF EXISTS ${quoteIdentifier(schema)}.${quoteIdentifier(name)}`,
  );
}

/** Returns whether an index exists, and whether its build was completed. */
async function indexState(
  runner: QueryRunner,
  schema: string,
  name: string,
): Promise<'absent' | 'invalid' | 'valid'> {
  const rows = (await runner.query(
    `SELECT indisvalid AS "isValid" FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
     WHERE relnamespace = $1::regnamespace AND relname = $2`,
    [quoteIdentifier(schema), name],
  )) as { isValid: boolean }[];
  const [row] = rows;
  if (row === undefined) return 'absent';
  return row.isValid ? 'valid' : 'invalid';
}

async function runWithLongLockTimeout(runner: QueryRunner, statement: string): Promise<void> {
  const startedMs = SYSTEM_CLOCK.monotonicMs();
  const progress = setInterval(() => {
    const seconds = Math.round((SYSTEM_CLOCK.monotonicMs() - startedMs) / 1_000);
    new Logger('Migrations').log(`${statement}: running for ${String(seconds)} s`);
  }, PROGRESS_MS);
  await runner.query(`SET lock_timeout = ${String(INDEX_LOCK_TIMEOUT_MS)}`);
  try {
    await runner.query(statement);
  } finally {
    clearInterval(progress);
    // A lost connection has no session to reset.
    if (!runner.isReleased) await runner.query(`SET lock_timeout = ${String(STATEMENT_LOCK_TIMEOUT_MS)}`);
  }
}
