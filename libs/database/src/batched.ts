import DataLoader from 'dataloader';
import type { DataSource } from 'typeorm';
import { isStatementFailure } from './errors';
import { inStatement } from './transaction';

/** Most calls that share one statement, unless said otherwise. */
const MAX_BATCH = 32;

/** A function whose calls of one turn of the event loop share one statement. Nothing is cached: the statement begins after the calls
 *  that it serves, so each sees every write acknowledged before it. If PostgreSQL refuses the batch, each call is run by itself: a bad
 *  call fails no other.
 *  @param runAll gives the results in the order of the calls, by one statement that is a transaction by itself; a promise among them is
 *    waited for by its caller only
 *  @param options.atOnce most statements under way; calls that come meanwhile share the next ones. Any number unless given */
export function batched<Call, Result>(
  runAll: (calls: readonly Call[]) => Promise<readonly (Result | Promise<Result>)[]>,
  { maxBatch = MAX_BATCH, atOnce = Infinity }: { maxBatch?: number; atOnce?: number } = {},
): (call: Call) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  const runSingle = async (call: Call): Promise<Result> => (await runAll([call]))[0] as Result;
  const loader = new DataLoader<Call, Result | Promise<Result>>(
    async (calls) => {
      underWay += 1;
      try {
        return await runAll(calls);
      } catch (error) {
        if (calls.length === 1 || !isStatementFailure(error)) throw error;
        return calls.map(runSingle);
      } finally {
        underWay -= 1;
        waiting.shift()?.();
      }
    },
    {
      cache: false,
      maxBatchSize: maxBatch,
      batchScheduleFn: (send) =>
        setImmediate(() => {
          if (underWay < atOnce) send();
          else waiting.push(send);
        }),
    },
  );
  return (call) => loader.load(call) as Promise<Result>;
}

/** `batched` for statements that lock rows. A call that is run by itself is repeated when PostgreSQL ends it
 *  to break a deadlock.
 *  @throws {ContentionError} when attempts or time run out */
export function batchedWrites<Call, Result>(
  dataSource: DataSource,
  runAll: (calls: readonly Call[]) => Promise<readonly Result[]>,
): (call: Call) => Promise<Result> {
  return batched((calls) =>
    calls.length === 1 ? inStatement(dataSource, () => runAll(calls)) : runAll(calls),
  );
}
