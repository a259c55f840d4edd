import type { PrivateServers } from '#platform/test-platform.ts';
import {
  type Benchmark,
  closing,
  type Comparison,
  type Contestant,
  firstAgainstSecond,
  type Side,
} from '../contest.ts';
import { runSql } from '../load.ts';
import { measuredBy, startMeasuredProgram, startTaskParts } from '../measured-program.ts';
import {
  DUE,
  type Firing,
  measureFires,
  MESSAGE_BYTES,
  prepareGraphileWorker,
  prepareQuartz,
} from './scheduler-peers.ts';

const SMALL = 10_000;
const LARGE = 1_000_000;
const NODES = 2;

const contestantName = (who: string, size: number): string =>
  `${who}, ${size.toLocaleString('en-US')} triggers`;
const ONE = 'one node';
const TWO = 'two nodes';
const BARE_LOOP = 'bare loop';
const TWO_BARE_LOOPS = 'two bare loops';

/**
 * Inserts daily triggers, due at least four hours from now, so that no other trigger is due during the run.
 */
const fillTriggers = (size: number): string => `
  INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
  SELECT n, 'facility-' || n, 'TaskInstanceGeneration', 'GenerateTaskInstancesSchedule',
    n % 60 || ' ' || (extract(hour FROM now() AT TIME ZONE 'Europe/Berlin')::int + 6 + n % 12) % 24 || ' * * *', 'Europe/Berlin',
    now() + interval '6 hours' + n % 43200 * interval '1 second'
  FROM generate_series(1, ${size}) AS n`;

/**
 * Makes triggers overdue by up to 30 s. They are spread over the table, differ in each round, and no two have
 * the same instant.
 */
const makeDue = (size: number, round: number): string => `
  UPDATE task.triggers SET next_fire_at = now() - facility_id % 30000 * interval '1 millisecond'
  WHERE facility_id IN (SELECT 1 + (${round} * 7 + n * ${Math.floor(size / DUE)}) % ${size} FROM generate_series(1, ${DUE}) AS n)`;

/** Fills the trigger table. Returns a measurement of fires. */
async function fillTable(ownerUrl: string, size: number): Promise<(programs: Firing) => Promise<number>> {
  await runSql(ownerUrl, fillTriggers(size), 'VACUUM ANALYZE task.triggers');
  let round = 0;
  return async (programs) => {
    round += 1;
    await runSql(ownerUrl, makeDue(size, round), 'VACUUM ANALYZE task.triggers', 'TRUNCATE task.outbox');
    return measureFires(programs);
  };
}

async function prepareTable(servers: PrivateServers, size: number) {
  const platform = await servers.startPlatform(['auth']);
  await platform.migrate('task');
  const { owner, app } = platform.settings.databases.task;
  const measure = await fillTable(owner, size);
  const nodes = size === SMALL ? NODES : 1;
  const bare = { DATABASE_URL: app, MESSAGE_BYTES: String(MESSAGE_BYTES) };
  const ours = await many(nodes, () => startTaskParts(servers, platform));
  const bares = await many(nodes, () => startMeasuredProgram(servers, 'bare-scheduler', bare));
  const programs = {
    [ONE]: ours.slice(0, 1),
    [TWO]: ours,
    [BARE_LOOP]: bares.slice(0, 1),
    [TWO_BARE_LOOPS]: bares,
  };
  const contestant = (who: keyof typeof DOES): Contestant => ({
    name: contestantName(who, size),
    does: DOES[who],
    measure: () => measure(programs[who]),
  });
  return { contestant, owner, stop: closing(...ours, ...bares, platform) };
}

async function many<T>(count: number, start: () => Promise<T>): Promise<T[]> {
  const started: T[] = [];
  while (started.length < count) started.push(await start());
  return started;
}

const DOES = {
  [ONE]:
    "the scheduler's batches: locks ten due triggers, evaluates cron and zone, writes fires, events and next fire times with one statement, commits",
  [TWO]: 'two such processes on one table',
  [BARE_LOOP]:
    '`pg` with prepared statements: BEGIN, the same SELECT … SKIP LOCKED, one statement with the same rows, COMMIT; evaluates no cron',
  [TWO_BARE_LOOPS]: 'two such processes on one table: the gain that this machine allows',
} as const;

/** The gain by the second process: the rate of `two` divided by the rate of `one`, on the small table. */
const gainOf = (two: string, one: string): Side => [contestantName(two, SMALL), contestantName(one, SMALL)];

const compare = (title: string, of: Side, against: Side, atLeast: number): Comparison => ({
  title,
  of,
  against,
  goal: { atLeast },
});

/** Fires of due triggers, until their events are committed. */
export const schedulerFire: Benchmark = {
  id: 'scheduler-fire',
  title: 'Fires of due triggers, each stored with its event',
  async prepare(servers) {
    const small = await prepareTable(servers, SMALL);
    const large = await prepareTable(servers, LARGE);
    const ours = contestantName(ONE, SMALL);
    const peers = [
      await prepareGraphileWorker(servers, small.owner, ours),
      await prepareQuartz(servers, small.owner, ours),
    ];
    return {
      unit: 'fires/s',
      maxRounds: 3,
      contestants: [
        ...([ONE, BARE_LOOP, TWO, TWO_BARE_LOOPS] as const).map(small.contestant),
        ...([ONE, BARE_LOOP] as const).map(large.contestant),
        ...peers.flatMap((peer) => peer.contestants),
      ],
      comparisons: [
        compare('bare loop, 10⁴', ours, contestantName(BARE_LOOP, SMALL), 0.8),
        compare('bare loop, 10⁶', contestantName(ONE, LARGE), contestantName(BARE_LOOP, LARGE), 0.8),
        compare('10⁶ : 10⁴ triggers', contestantName(ONE, LARGE), ours, 0.9),
        compare(
          'two nodes : one, compared with bare loops',
          gainOf(TWO, ONE),
          gainOf(TWO_BARE_LOOPS, BARE_LOOP),
          0.9,
        ),
        ...peers.flatMap((peer) => peer.comparisons),
      ],
      conditions: [
        `${DUE.toLocaleString('en-US')} triggers are made due, and the time ends when all have fired; batches of 10, one connection per process; every batch is a durable commit; nothing is published during the measurement`,
        ...peers.flatMap((peer) => peer.conditions),
      ],
      close: closing(...peers, small, large),
    };
  },
};

const SCHEDULES = 1_000;
const HORIZON_DAYS = 30;
const INSTANCES = SCHEDULES * HORIZON_DAYS;
const FACILITY_ID = 501;

/** Inserts daily schedules at 60 different minutes, in a zone with daylight saving time. */
const FILL_SCHEDULES = `
  INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
    created_by_persona, request_digest)
  SELECT gen_random_uuid(), ${FACILITY_ID}, 'Check the fire extinguishers ' || n, n % 60 || ' 2 * * *', 'Europe/Berlin', now(),
    'personid:1001', 2, ''
  FROM generate_series(1, ${SCHEDULES}) AS n`;
const RESET = [
  'TRUNCATE task.instances',
  'UPDATE task.schedules SET generated_until = now()',
  'VACUUM ANALYZE task.schedules',
];
const BULK = `
  INSERT INTO task.instances (schedule_id, facility_id, name, due_at)
  SELECT schedule_id, facility_id, name, date_trunc('minute', now()) + day * interval '1 day'
  FROM task.schedules CROSS JOIN generate_series(1, ${HORIZON_DAYS}) AS day`;

/** Generation of the instances of a facility's schedules. */
export const generation: Benchmark = {
  id: 'generation',
  title: 'Generation of the instances of 1,000 schedules, 30 days ahead',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth']);
    await platform.migrate('task');
    const { owner, app } = platform.settings.databases.task;
    const program = await startTaskParts(servers, platform);
    await runSql(owner, FILL_SCHEDULES);
    const ours = measuredBy(
      program,
      'generate',
      'the generator of task-service: locks the schedules, evaluates cron and zone, inserts and counts the missing instances, stores how far it generated, commits',
    );
    return {
      unit: 'instances/s',
      ...firstAgainstSecond('bulk insert', { atLeast: 0.8 }, [
        {
          ...ours,
          measure: async (seconds) => {
            await runSql(owner, ...RESET);
            return ours.measure(seconds);
          },
        },
        {
          name: 'bulk insert',
          does: 'one INSERT … SELECT over the schedules and a series of days, entirely in the database: no cron, no zone, no check for existing instances',
          measure: async () => {
            await runSql(owner, ...RESET);
            const startedAtMs = performance.now();
            await runSql(app, BULK);
            return INSTANCES / ((performance.now() - startedAtMs) / 1_000);
          },
        },
      ]),
      conditions: [
        `${INSTANCES.toLocaleString('en-US')} instances into an empty table with all its indexes and its foreign key; ours in runs of 10,000 with a durable transaction each, the bulk insert in one transaction`,
      ],
      close: closing(program, platform),
    };
  },
};

/** Publication of stored events. */
export const outboxRelay: Benchmark = {
  id: 'outbox-relay',
  title: 'Publishing of committed events, until the broker confirms them',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth']);
    await platform.migrate('task');
    const program = await startTaskParts(servers, platform, { RELAYS: 'true' });
    return {
      unit: 'events/s',
      ...firstAgainstSecond('bare publish', { atLeast: 0.6 }, [
        measuredBy(
          program,
          'relay',
          'the relay of task-service: locks partitions, selects up to 400 events in order, builds the envelope of each, publishes it with a confirm, writes a log line, deletes confirmed events, commits; two concurrent passes',
        ),
        measuredBy(
          program,
          'bare publish',
          'only a confirm channel of `amqplib`: no database, no order, no log',
        ),
      ]),
      conditions: [
        '5,000 events, each of another facility, stored in one commit; the same envelope, persistent and mandatory, to the same quorum queue; at most 800 unconfirmed messages on both sides',
      ],
      close: closing(program, platform),
    };
  },
};
