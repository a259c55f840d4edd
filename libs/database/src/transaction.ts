import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { type Clock, fullJitterDelayMs, sleep, SYSTEM_CLOCK } from '@platform/time';
import { ContentionError, DatabaseUnavailableError, isSerializationFailure } from './errors';
import { type Isolation, PoolDriver, type PreparedStatement, type Query, sendTransaction } from './pool';

/** How often and how long a transaction is repeated. */
export interface TransactionOptions {
  /** Attempts in all; 10 unless given. */
  maxAttempts?: number;
  /** No further attempt starts after this long; 5,000 ms unless given. */
  deadlineMs?: number;
  /**
   * Transactions of this process that share a key run one after the other. It spares writers of one row most
   * collisions; those with other replicas remain, and are retried.
   */
  serializeOn?: string | readonly string[];
  /** It comes before the others that wait for those keys. */
  isNext?: boolean;
  clock?: Clock;
  onRetry?: (error: unknown, attempt: number) => void;
}

/** Hears of the collisions of a data source's transactions. */
export interface TransactionObserver {
  /** PostgreSQL asked for a repetition, and there is one. */
  retried(): void;
  /** Attempts or time ran out. */
  exhausted(): void;
}

const BACKOFF = { baseMs: 10, maxMs: 500 };
const observers = new WeakMap<DataSource, TransactionObserver>();
const mutexes = new WeakMap<DataSource, KeyedMutex>();

/** Tells `observer` of the collisions of every transaction on the data source. */
export function observeTransactions(dataSource: DataSource, observer: TransactionObserver): void {
  observers.set(dataSource, observer);
}

/**
 * Runs `work`, one statement that is a transaction by itself, and repeats it, with full jitter, when
 * PostgreSQL asks for that (40001, 40P01). Its isolation is the pool's `defaultIsolation`. It costs one round
 * trip where `inTransaction` costs three.
 * @throws as `inTransaction`
 */
export function inStatement<T>(
  dataSource: DataSource,
  work: () => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  return inTurn(dataSource, work, options);
}

/**
 * Runs `work` in one transaction and repeats the whole of it, with full jitter, when PostgreSQL asks for that
 * (40001, 40P01). `work` must do everything through `manager` and nothing that a repetition would do twice.
 * @throws {ContentionError} when attempts or time run out
 * @throws whatever `work` throws, after the rollback. A connection lost during COMMIT leaves the outcome
 * unknown.
 */
export function inTransaction<T>(
  dataSource: DataSource,
  isolation: Isolation,
  work: (manager: EntityManager) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  return inTurn(dataSource, () => runOnce(dataSource, isolation, work), options);
}

/**
 * Runs a transaction in two round trips where `inTransaction` needs four, and repeats it as that does: BEGIN
 * goes with `first`, COMMIT with the statement that `next` makes of its rows, if any. Its isolation is the
 * pool's `defaultIsolation`. `first` may lock but must not write: should the server give up on BEGIN alone,
 * it runs without, and its rows are not looked at.
 * @returns the rows of that statement
 * @throws as `inTransaction`
 */
export function inTwoRoundTrips<Row extends object, Written extends object>(
  dataSource: DataSource,
  first: PreparedStatement & Partial<Pick<Query, 'values'>>,
  next: (rows: Row[]) => Query | null,
): Promise<Written[]> {
  return inTurn(dataSource, () => sendTransaction<Row, Written>(dataSource, first, next), {});
}

function inTurn<T>(
  dataSource: DataSource,
  attemptOnce: () => Promise<T>,
  options: TransactionOptions,
): Promise<T> {
  const { deadlineMs = 5_000, clock = SYSTEM_CLOCK, serializeOn, isNext } = options;
  const deadlineAtMs = clock.monotonicMs() + deadlineMs;
  const run = (): Promise<T> => repeat(dataSource, attemptOnce, { ...options, clock, deadlineAtMs });
  if (serializeOn === undefined) return run();
  const mutex = mutexOf(dataSource);
  if (typeof serializeOn === 'string') return mutex.run(serializeOn, run, isNext);
  // Everybody takes several in the same order, so that no two wait for each other.
  const keys = [...new Set(serializeOn)].sort();
  return keys.reduceRight((work, key) => () => mutex.run(key, work, isNext), run)();
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
    // Also the first one: it may have waited long for its turn.
    if (clock.monotonicMs() > deadlineAtMs) throw exhausted('no turn for the transaction in time');
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
    // First and outside of `inside`: without a connection there is nothing to roll back.
    await runner.connect();
    return await inside(runner, isolation, work);
  } finally {
    await runner.release();
  }
}

async function inside<T>(
  runner: QueryRunner,
  isolation: Isolation,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  try {
    await begin(runner, isolation);
    const result = await work(runner.manager);
    await runner.commitTransaction();
    return result;
  } catch (error) {
    // TypeORM releases the runner when its connection is lost; every later error is a consequence of the
    // loss.
    if (runner.isReleased) throw new DatabaseUnavailableError('the connection was lost', { cause: error });
    await rollBack(runner, error);
    throw error;
  }
}

/** One round trip; two at another isolation than the pool's, which TypeORM sets by a statement of its own. */
async function begin(runner: QueryRunner, isolation: Isolation): Promise<void> {
  const { defaultIsolation } = PoolDriver.of(runner.dataSource);
  await runner.startTransaction(isolation === defaultIsolation ? undefined : isolation);
}

/** A failed rollback is reported with the error that made it necessary. */
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

/** One piece of work at a time per key, in the order of arrival, within this process. */
export class KeyedMutex {
  /** Those that wait, by the key that somebody holds. */
  private readonly waiting = new Map<string, (() => void)[]>();

  /**
   * Runs `work` once nobody before holds `key`. The turn ends when `work` settles.
   * @param isNext it comes before all others that wait
   */
  async run<T>(key: string, work: () => Promise<T>, isNext = false): Promise<T> {
    const waiting = this.waiting.get(key);
    if (waiting === undefined) this.waiting.set(key, []);
    else
      await new Promise<void>((resolve) => {
        if (isNext) waiting.unshift(resolve);
        else waiting.push(resolve);
      });
    try {
      return await work();
    } finally {
      this.passOn(key);
    }
  }

  /** Keys that somebody holds or waits for. */
  get size(): number {
    return this.waiting.size;
  }

  private passOn(key: string): void {
    const begin = this.waiting.get(key)?.shift();
    if (begin === undefined) this.waiting.delete(key);
    else begin();
  }
}
