import DataLoader from 'dataloader';
import type { DataSource } from 'typeorm';
import { isStatementFailure } from './errors';
import { inStatement } from './transaction';

/** Default maximum of calls that share one statement. */
const MAX_BATCH = 32;

/**
 * Returns a function whose calls within one event-loop turn share one statement. Nothing is cached: the
 * statement starts after the calls that it serves, so each call sees every write acknowledged before it. If
 * PostgreSQL refuses the batch, each call is run alone, so that a bad call fails no other.
 * @param runAll returns the results in the order of the calls, from one statement that is its own
 * transaction. If a result is a promise, only its caller waits for it
 * @param options.maxBatch maximum calls per statement; 32 unless given
 * @param options.atOnce maximum statements in flight; calls made while that many are in flight share the next
 * ones. Unlimited unless given
 */
export function batched<Call, Result>(
  runAll: (calls: readonly Call[]) => Promise<readonly (Result | Promise<Result>)[]>,
  { maxBatch = MAX_BATCH, atOnce = Infinity }: { maxBatch?: number; atOnce?: number } = {},
): (call: Call) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let inFlight = 0;
  const runSingle = async (call: Call): Promise<Result> => (await runAll([call]))[0] as Result;
  const loader = new DataLoader<Call, Result | Promise<Result>>(
    async (calls) => {
      inFlight += 1;
      try {
        return await runAll(calls);
      } catch (error) {
        if (calls.length === 1 || !isStatementFailure(error)) throw error;
        return calls.map(runSingle);
      } finally {
        inFlight -= 1;
        waiting.shift()?.();
      }
    },
    {
      cache: false,
      maxBatchSize: maxBatch,
      batchScheduleFn: (send) =>
        setImmediate(() => {
          if (inFlight < atOnce) send();
          else waiting.push(send);
        }),
    },
  );
  return (call) => loader.load(call) as Promise<Result>;
}

/**
 * Like {@link batched}, for statements that lock rows. A call that runs alone is repeated when PostgreSQL
 * aborts it to break a deadlock.
 * @throws {ContentionError} when attempts or time run out
 */
export function batchedWrites<Call, Result>(
  dataSource: DataSource,
  runAll: (calls: readonly Call[]) => Promise<readonly Result[]>,
): (call: Call) => Promise<Result> {
  return batched((calls) =>
    calls.length === 1 ? inStatement(dataSource, () => runAll(calls)) : runAll(calls),
  );
}
