import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { type Clock, fullJitterDelayMs, sleep, SYSTEM_CLOCK } from '@platform/time';
import { ContentionError, DatabaseUnavailableError, isSerializationFailure } from './errors';
import { type Isolation, PoolDriver, type PreparedStatement, type Query, sendTransaction } from './pool';

/** Limits for repeating a transaction. */
export interface TransactionOptions {
  /** Maximum attempts, including the first; 10 unless given. */
  maxAttempts?: number;
  /** Time in milliseconds after which no attempt starts; 5,000 unless given. */
  deadlineMs?: number;
  /**
   * Key or keys by which transactions of this process run one after the other. This avoids most collisions
   * between writers of one row; those with other replicas remain and are retried.
   */
  serializeOn?: string | readonly string[];
  /** Whether the transaction goes ahead of all others that wait for the keys of `serializeOn`. */
  goesFirst?: boolean;
  clock?: Clock;
  onRetry?: (error: unknown, attempt: number) => void;
}

/** Observes the collisions of a data source's transactions. */
export interface TransactionObserver {
  /** Called before a transaction is retried. */
  retried(): void;
  /** Called when attempts or time ran out. */
  exhausted(): void;
}

const BACKOFF = { baseMs: 10, maxMs: 500 };
const observers = new WeakMap<DataSource, TransactionObserver>();
const mutexes = new WeakMap<DataSource, KeyedMutex>();

/** Reports the collisions of every transaction on the data source to `observer`. */
export function observeTransactions(dataSource: DataSource, observer: TransactionObserver): void {
  observers.set(dataSource, observer);
}

/**
 * Runs `work`, a single statement outside a transaction block, and repeats it with full jitter after a
 * serialization failure or a deadlock (40001, 40P01). Its isolation is the pool's `defaultIsolation`. Costs
 * one round trip; `inTransaction` costs three for one statement.
 * @throws as `inTransaction`
 */
export function inStatement<T>(
  dataSource: DataSource,
  work: () => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  return runSerialized(dataSource, work, options);
}

/**
 * Runs `work` in one transaction, and repeats the whole of it with full jitter after a serialization failure
 * or a deadlock (40001, 40P01). `work` must do everything through `manager`, and nothing that must not be
 * repeated.
 * @throws {ContentionError} when attempts or time run out
 * @throws any error of `work`, after the rollback. After a connection lost during COMMIT the outcome is
 * unknown.
 */
export function inTransaction<T>(
  dataSource: DataSource,
  isolation: Isolation,
  work: (manager: EntityManager) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  return runSerialized(dataSource, () => runOnce(dataSource, isolation, work), options);
}

/**
 * Runs a transaction of two statements in two round trips (`inTransaction` needs four) and retries it in the
 * same way. BEGIN is sent with `first`, COMMIT with the statement that `next` builds from the rows of
 * `first`, if any. Its isolation is the pool's `defaultIsolation`. `first` may lock but must not write: if
 * the server cancels only BEGIN, `first` runs outside a transaction, and its rows are ignored.
 * @returns the rows of the statement that `next` builds
 * @throws as `inTransaction`
 */
export function inTwoRoundTrips<Row extends object, Written extends object>(
  dataSource: DataSource,
  first: PreparedStatement & Partial<Pick<Query, 'values'>>,
  next: (rows: Row[]) => Query | null,
): Promise<Written[]> {
  return runSerialized(dataSource, () => sendTransaction<Row, Written>(dataSource, first, next), {});
}

function runSerialized<T>(
  dataSource: DataSource,
  attemptOnce: () => Promise<T>,
  options: TransactionOptions,
): Promise<T> {
  const { deadlineMs = 5_000, clock = SYSTEM_CLOCK, serializeOn, goesFirst } = options;
  const deadlineAtMs = clock.monotonicMs() + deadlineMs;
  const run = (): Promise<T> => repeat(dataSource, attemptOnce, { ...options, clock, deadlineAtMs });
  if (serializeOn === undefined) return run();
  const mutex = mutexOf(dataSource);
  if (typeof serializeOn === 'string') return mutex.run(serializeOn, run, goesFirst);
  // Keys are acquired in sorted order, so that no two transactions wait for each other.
  const keys = [...new Set(serializeOn)].sort();
  return keys.reduceRight((work, key) => () => mutex.run(key, work, goesFirst), run)();
}

async function repeat<T>(
  dataSource: DataSource,
  attemptOnce: () => Promise<T>,
  {
    maxAttempts = 10,
    onRetry,
    clock,
    deadlineAtMs,
  }: TransactionOptions & { clock: Clock; deadlineAtMs: number },
): Promise<T> {
  const observer = observers.get(dataSource);
  const exhausted = (message: string, cause?: unknown): ContentionError => {
    observer?.exhausted();
    return new ContentionError(message, { cause });
  };
  for (let attempt = 1; ; attempt += 1) {
    // Checked for the first attempt too, which may have waited long for its keys.
    if (clock.monotonicMs() > deadlineAtMs) throw exhausted('the transaction could not start in time');
    try {
      return await attemptOnce();
    } catch (error) {
      if (!isSerializationFailure(error)) throw error;
      const waitMs = fullJitterDelayMs(attempt, BACKOFF);
      if (attempt >= maxAttempts || clock.monotonicMs() + waitMs > deadlineAtMs)
        throw exhausted(`the transaction kept colliding (${attempt} attempts)`, error);
      observer?.retried();
      onRetry?.(error, attempt);
      await sleep(waitMs);
    }
  }
}

async function runOnce<T>(
  dataSource: DataSource,
  isolation: Isolation,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  const runner = dataSource.createQueryRunner();
  try {
    // Connects outside `runWith`: without a connection there is nothing to roll back.
    await runner.connect();
    return await runWith(runner, isolation, work);
  } finally {
    await runner.release();
  }
}

async function runWith<T>(
  runner: QueryRunner,
  isolation: Isolation,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  try {
    await startTransaction(runner, isolation);
    const result = await work(runner.manager);
    await runner.commitTransaction();
    return result;
  } catch (error) {
    // TypeORM releases the runner when its connection is lost. Every later error is only a consequence.
    if (runner.isReleased) throw new DatabaseUnavailableError('the connection was lost', { cause: error });
    await rollBack(runner, error);
    throw error;
  }
}

/**
 * Begins a transaction in one round trip; in two if its isolation is not the pool's, because TypeORM sets it
 * by another statement.
 */
async function startTransaction(runner: QueryRunner, isolation: Isolation): Promise<void> {
  const { defaultIsolation } = PoolDriver.of(runner.dataSource);
  await runner.startTransaction(isolation === defaultIsolation ? undefined : isolation);
}

/** Rolls back. A failed rollback is reported together with the error that made it necessary. */
async function rollBack(runner: QueryRunner, error: unknown): Promise<void> {
  try {
    await runner.rollbackTransaction();
  } catch (rollbackError) {
    throw new DatabaseUnavailableError('the transaction could not be rolled back', {
      cause: new AggregateError([error, rollbackError]),
    });
  }
}

function mutexOf(dataSource: DataSource): KeyedMutex {
  let mutex = mutexes.get(dataSource);
  if (mutex === undefined) mutexes.set(dataSource, (mutex = new KeyedMutex()));
  return mutex;
}

/** Runs one task at a time per key, in order of arrival, within this process. */
export class KeyedMutex {
  /** The tasks that wait for each key that is held. */
  private readonly waiting = new Map<string, (() => void)[]>();

  /**
   * Runs `work` once `key` is free, and holds the key until `work` settles.
   * @param goesFirst whether `work` goes ahead of all other tasks that wait for the key
   */
  async run<T>(key: string, work: () => Promise<T>, goesFirst = false): Promise<T> {
    const waiting = this.waiting.get(key);
    if (waiting === undefined) this.waiting.set(key, []);
    else
      await new Promise<void>((resolve) => {
        if (goesFirst) waiting.unshift(resolve);
        else waiting.push(resolve);
      });
    try {
      return await work();
    } finally {
      this.release(key);
    }
  }

  /** Number of keys that are held. */
  get size(): number {
    return this.waiting.size;
  }

  private release(key: string): void {
    const startNext = this.waiting.get(key)?.shift();
    if (startNext === undefined) this.waiting.delete(key);
    else startNext();
  }
}
