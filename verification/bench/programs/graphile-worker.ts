/**
 * graphile-worker with fast settings: a local queue, and completion of jobs in batches. Each job stores an
 * event.
 */
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { serveMeasurements } from './serve-measurements';

const DUE = Number(process.env['DUE']);
const STORE_EVENT = { name: 'store', text: process.env['STORE_EVENT']! };
const TASK = 'store-event';

const pgPool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 20 });
const logger = new Logger(() => () => undefined);

async function main(): Promise<void> {
  const utils = await makeWorkerUtils({ pgPool, logger });
  serveMeasurements({
    add: async () => {
      const runAt = new Date();
      await utils.addJobs(Array.from({ length: DUE }, () => ({ identifier: TASK, payload: {}, runAt })));
      return DUE;
    },
    fire: async () => {
      let left = DUE;
      let finish = (): void => undefined;
      const finished = new Promise<void>((resolve) => (finish = resolve));
      const runner = await run({
        pgPool,
        logger,
        noHandleSignals: true,
        preset: { worker: { concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 20 } },
        taskList: {
          [TASK]: async (_payload, { withPgClient }) => {
            await withPgClient((client) => client.query(STORE_EVENT));
            left -= 1;
            if (left === 0) finish();
          },
        },
      });
      await finished;
      // Resolves when the finished jobs have been deleted.
      await runner.stop();
      return DUE;
    },
  });
}

void main();
