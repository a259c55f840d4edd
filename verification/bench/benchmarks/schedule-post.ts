import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { makeAccessToken } from '#platform/callers.ts';
import { percentile } from '#platform/statistics.ts';
import { eventually } from '#platform/waiting.ts';
import { type Benchmark, closing, firstAgainstSecond } from '../contest.ts';
import { openQueue } from '../event-queue.ts';
import { HttpLoad, type LoadRequest, SqlLoad, type SqlWork } from '../load.ts';

const CONNECTIONS = 32;
const FACILITIES = 1_000;
/** Size of a ScheduleCreatedEvent in the outbox. */
const EVENT_BYTES = 270;
const POLL_MS = 10;
const DRAIN_LIMIT_MS = 60_000;

const NAME = 'Check the fire extinguishers';
const EVENT = JSON.stringify({ filler: 'x'.repeat(EVENT_BYTES - JSON.stringify({ filler: '' }).length) });
const HEADERS = JSON.stringify({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' });

const INSERT_SCHEDULE = `
  INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
    created_by_name, created_by_persona, request_digest)
  VALUES ($1, $2, $3, '0 2 * * *', 'Europe/Berlin', now(), 'userid:9001', 'Ivy Internal', 1, $4) RETURNING *`;
const INSERT_EVENT = `
  INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
  VALUES ($1, $2, $3, 'ScheduleCreatedEvent', now(), $4, $5)`;

const facilityOf = (worker: number, count: number): number => 1 + ((worker * 37 + count) % FACILITIES);

const bareInsert: SqlWork = async (client, worker, count) => {
  const facilityId = facilityOf(worker, count);
  await client.query('BEGIN');
  const schedule = [randomUUID(), facilityId, NAME, randomUUID() + randomUUID()];
  await client.query({ name: 'schedule', text: INSERT_SCHEDULE, values: schedule });
  const event = [facilityId % 16, facilityId, randomUUID(), HEADERS, EVENT];
  await client.query({ name: 'event', text: INSERT_EVENT, values: event });
  await client.query('COMMIT');
};

/** Creation of schedules, until their events are confirmed. */
export const schedulePost: Benchmark = {
  id: 'schedule-post',
  title: 'POST /Schedules, until its event is published',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'task']);
    const { owner, app } = platform.settings.databases.task;
    const broker = await openQueue(platform.settings.mainBusUrl);
    const ours = new HttpLoad(platform.url('task'), CONNECTIONS);
    const bare = new SqlLoad(app, CONNECTIONS);
    const database = await new pg.Client({ connectionString: owner }).connect();
    const post = posting(`Bearer ${makeAccessToken(platform.settings)}`);
    return {
      unit: 'schedules/s',
      ...firstAgainstSecond('bare rows', { atLeast: 0.7 }, [
        {
          name: 'task-service',
          does: 'verifies the HS256 token, checks revocation, persona and facility, validates cron and zone, stores schedule and event with one statement, responds 201; the relay publishes the events during the load, and the time ends when the broker has confirmed all',
          measure: async (seconds) => {
            const startedAtMs = performance.now();
            const { latenciesMs } = await ours.run(seconds, post);
            await untilRelayed(database);
            const tookSeconds = (performance.now() - startedAtMs) / 1_000;
            await broker.purge();
            return latenciesMs.length / tookSeconds;
          },
        },
        {
          name: 'bare pg',
          does: 'BEGIN; the same two rows with prepared statements; COMMIT; no HTTP, no checks, no publishing',
          measure: async (seconds) => {
            const rate = await bare.run(seconds, bareInsert);
            // Otherwise the service would publish these rows in its own round.
            await database.query('TRUNCATE task.outbox');
            return rate;
          },
        },
      ]),
      conditions: [
        `${CONNECTIONS} connections, 20 database connections, ${FACILITIES.toLocaleString('en-US')} facilities; a durable quorum queue receives the events`,
      ],
      close: closing(ours, bare, database, broker, platform),
    };
  },
};

function posting(authorization: string): (connection: number, count: number) => LoadRequest {
  const headers = { authorization, 'content-type': 'application/json' };
  return (connection, count) => {
    const facilityId = facilityOf(connection, count);
    const schedule = { facilityId, name: NAME, schedule: '0 2 * * *', timeZone: 'Europe/Berlin' };
    return { method: 'POST', path: '/Schedules', headers, body: JSON.stringify(schedule), expect: 201 };
  };
}

const SATURATION_SECONDS = 2;

/** Latency of a new schedule's event, at half of the service's maximum rate. */
export const commitToConsumer: Benchmark = {
  id: 'commit-to-consumer',
  title: 'From a new schedule to its event at a consumer, at 50 % of saturation',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'task']);
    const { broker, allArrived } = await openConsumer(platform.settings.mainBusUrl);
    const load = new HttpLoad(platform.url('task'), CONNECTIONS);
    const post = posting(`Bearer ${makeAccessToken(platform.settings)}`);
    const saturate = async (): Promise<number> => {
      const { perSecond, latenciesMs } = await load.run(SATURATION_SECONDS, post);
      await allArrived(latenciesMs.length);
      return perSecond;
    };
    await saturate();
    const rate = (await saturate()) / 2;
    return {
      unit: 'ms (p99)',
      maxRounds: 3,
      contestants: [
        {
          name: 'event',
          does: `${Math.round(rate)} POST /Schedules per second; from the event's send time, just before the commit, to the callback of a consumer`,
          measure: async (seconds) => {
            const sent = await load.runAtRate(seconds, rate, (request) => post(0, request));
            return percentile(await allArrived(sent.length), 0.99);
          },
        },
      ],
      comparisons: [{ title: '50 ms', of: 'event', against: 50, goal: { atMost: 1 } }],
      conditions: [`${CONNECTIONS} connections; a durable quorum queue receives the events`],
      close: closing(load, broker, platform),
    };
  },
};

/** Opens a consumer that records the latency of each event. */
async function openConsumer(url: string) {
  const waitsMs: number[] = [];
  const broker = await openQueue(url, (body) => {
    const { sentTime } = JSON.parse(body) as { sentTime: string };
    waitsMs.push(Date.now() - Date.parse(sentTime));
  });
  const allArrived = async (sent: number): Promise<number[]> => {
    await eventually(
      () => {
        if (waitsMs.length < sent) throw new Error(`${waitsMs.length} of ${sent} events have arrived`);
      },
      { timeoutMs: DRAIN_LIMIT_MS, intervalMs: POLL_MS },
    );
    return waitsMs.splice(0);
  };
  return { broker, allArrived };
}

async function untilRelayed(database: pg.Client): Promise<void> {
  await eventually(
    async () => {
      const { rowCount } = await database.query('SELECT 1 FROM task.outbox LIMIT 1');
      if (rowCount !== 0) throw new Error('the outbox is not empty');
    },
    { timeoutMs: DRAIN_LIMIT_MS, intervalMs: POLL_MS },
  );
}
