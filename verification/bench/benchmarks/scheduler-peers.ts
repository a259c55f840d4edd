/** Peers of our scheduler. They use their own tables in the same database. */
import type { PrivateServers } from '#platform/test-platform.ts';
import { closing, type Contest } from '../contest.ts';
import { runSql } from '../load.ts';
import { measureAt, startMeasuredProgram } from '../measured-program.ts';
import { fillQuartz, makeQuartzDue, NO_QUARTZ, startQuartz } from '../peers/quartz.ts';

export const DUE = 6_000;
/** Number of due triggers for Quartz. It is lower, because Quartz is slow. */
const QUARTZ_DUE = 2_000;
const TRIGGERS = 10_000;
/** Size of an ITaskInstanceGenerationRequested in its envelope. */
export const MESSAGE_BYTES = 146;

/** SQL by which the jobs of the peers store one event of a facility. */
const STORE_EVENT = `
  INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
  SELECT id % 16, id, gen_random_uuid(), 'ITaskInstanceGenerationRequested', now(), '{"traceparent":"${'0'.repeat(55)}"}',
    '{"filler":"${'x'.repeat(MESSAGE_BYTES - 13)}"}'
  FROM (SELECT (random() * ${TRIGGERS})::int AS id) AS facility`;

/** Programs that fire on request until nothing is due. */
export type Firing = readonly { readonly url: string }[];

/** Measures the fires per second of programs, with all triggers due at the start. */
export async function measureFires(programs: Firing, due = DUE): Promise<number> {
  const startedAtMs = performance.now();
  const fired = await Promise.all(programs.map(({ url }) => measureAt(url, 'fire', 0)));
  const tookSeconds = (performance.now() - startedAtMs) / 1_000;
  const total = fired.reduce((sum, each) => sum + each, 0);
  if (total !== due) throw new Error(`${total} of ${due} due triggers fired`);
  return total / tookSeconds;
}

type Peer = Pick<Contest, 'contestants' | 'comparisons' | 'conditions' | 'close'>;

/** Prepares graphile-worker. @param ours name of the contestant that is judged against it */
export async function prepareGraphileWorker(
  servers: PrivateServers,
  owner: string,
  ours: string,
): Promise<Peer> {
  const variables = { STORE_EVENT, DUE: String(DUE), DATABASE_URL: owner };
  const worker = await startMeasuredProgram(servers, 'graphile-worker', variables);
  const name = 'graphile-worker';
  const does =
    '24 concurrent jobs, a local queue of 500, completion every 20 ms: locks 500 jobs, runs each, which commits the same outbox row in its own transaction, deletes finished jobs; evaluates no cron, stores no next fire time, and repeats finished jobs if the process ends before it deletes them';
  const measure = async (): Promise<number> => {
    await runSql(owner, 'TRUNCATE task.outbox');
    await measureAt(worker.url, 'add', 0);
    return measureFires([worker]);
  };
  return {
    contestants: [{ name, does, measure }],
    comparisons: [{ title: name, of: ours, against: name, goal: { atLeast: 1 } }],
    conditions: [],
    close: closing(worker),
  };
}

/** Prepares Quartz, if it is installed. @param ours name of the contestant that is judged against it */
export async function prepareQuartz(servers: PrivateServers, owner: string, ours: string): Promise<Peer> {
  const quartz = await startQuartz(servers, owner, { STORE_EVENT, DUE: String(QUARTZ_DUE) });
  if (quartz === null) return { contestants: [], comparisons: [], conditions: [NO_QUARTZ], close: closing() };
  await runSql(owner, fillQuartz(TRIGGERS));
  const name = 'Quartz';
  const does =
    '2.3 over JDBC, clustered, ten threads, batches of ten: fires 2,000 of 10,000 daily cron triggers; each job commits the same outbox row in its own transaction';
  const measure = async (): Promise<number> => {
    await runSql(owner, makeQuartzDue(QUARTZ_DUE), 'VACUUM ANALYZE qrtz_triggers', 'TRUNCATE task.outbox');
    return measureFires([quartz], QUARTZ_DUE);
  };
  return {
    contestants: [{ name, does, measure }],
    comparisons: [{ title: name, of: ours, against: name, goal: { atLeast: 20 } }],
    conditions: [],
    close: closing(quartz),
  };
}
