import type { Benchmark } from '../benchmark.ts';
import type { Laboratory, RunningProgram } from '#platform/laboratory.ts';
import { measureAt } from '../measured-program.ts';
import { runSql } from '../sql-load.ts';
import { startTaskParts } from '../task-laboratory.ts';

const SMALL = 10_000;
const LARGE = 1_000_000;
const DUE = 6_000;
const NODES = 2;
/** What an ITaskInstanceGenerationRequested is in its envelope. */
const BODY_BYTES = 662;

const name = (who: string, size: number): string => `${who}, ${size.toLocaleString('en-US')} triggers`;
const ONE = 'one node';
const TWO = 'two nodes';
const BARE = 'bare loop';
const TWO_BARE = 'two bare loops';

/** Daily at wall times of Berlin that are at least four hours away, so that nothing else comes due while this runs. */
const fill = (size: number): string => `
  INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
  SELECT n, 'facility-' || n, 'TaskInstanceGeneration', 'GenerateTaskInstancesSchedule',
    n % 60 || ' ' || (extract(hour FROM now() AT TIME ZONE 'Europe/Berlin')::int + 6 + n % 12) % 24 || ' * * *', 'Europe/Berlin',
    now() + interval '6 hours' + n % 43200 * interval '1 second'
  FROM generate_series(1, ${size}) AS n`;

/** Overdue by up to half a minute, spread over the table; others each time, and never the same instant twice. */
const makeDue = (size: number, round: number): string => `
  UPDATE task.triggers SET next_fire_at = now() - facility_id % 30000 * interval '1 millisecond'
  WHERE facility_id IN (SELECT 1 + (${round} * 7 + n * ${Math.floor(size / DUE)}) % ${size} FROM generate_series(1, ${DUE}) AS n)`;

/** One trigger table with everybody who fires from it. */
class Table {
  readonly #size: number;
  readonly #ownerUrl: string;
  #round = 0;

  constructor(size: number, ownerUrl: string) {
    this.#size = size;
    this.#ownerUrl = ownerUrl;
  }

  async fill(): Promise<void> {
    await runSql(this.#ownerUrl, fill(this.#size), 'VACUUM ANALYZE task.triggers');
  }

  /** Fires per second of these programs together, from the moment that everything is due. */
  async measure(programs: readonly RunningProgram[]): Promise<number> {
    this.#round += 1;
    await runSql(
      this.#ownerUrl,
      makeDue(this.#size, this.#round),
      'VACUUM ANALYZE task.triggers',
      'TRUNCATE task.outbox',
    );
    const startedAtMs = performance.now();
    const fired = await Promise.all(programs.map(({ url }) => measureAt(url, 'fire', 0)));
    const tookSeconds = (performance.now() - startedAtMs) / 1_000;
    const total = fired.reduce((sum, each) => sum + each, 0);
    if (total !== DUE) throw new Error(`${total} of ${DUE} due triggers fired`);
    return total / tookSeconds;
  }
}

async function prepareTable(laboratory: Laboratory, size: number) {
  const services = await laboratory.startServices(['auth']);
  const { settings } = services;
  await laboratory.migrate('task', settings);
  const { owner, app } = settings.databases.task;
  const table = new Table(size, owner);
  await table.fill();
  const nodes = size === SMALL ? NODES : 1;
  const bare = { DATABASE_URL: app, BODY_BYTES: String(BODY_BYTES) };
  const ours = await many(nodes, () => startTaskParts(laboratory, settings));
  const bares = await many(nodes, () => laboratory.startPeer('tools/bench/peers/bare-scheduler.ts', bare));
  return {
    ...{ table, ours, bares },
    stop: async () => {
      await Promise.all([...ours, ...bares].map((program) => program.stop()));
      await services.stop();
    },
  };
}

async function many<T>(count: number, start: () => Promise<T>): Promise<T[]> {
  const started: T[] = [];
  while (started.length < count) started.push(await start());
  return started;
}

const DOES = {
  [ONE]: `the scheduler's own batches: locks ten due triggers, evaluates cron and zone, writes fire rows and outbox rows and moves the triggers in one statement, commits`,
  [TWO]: 'two processes of it on one table',
  [BARE]:
    '`pg` with prepared statements: BEGIN, the same SELECT … SKIP LOCKED, one statement with the same rows, COMMIT; evaluates no cron',
  [TWO_BARE]: 'two processes of it on one table: what this machine gives to a second process',
} as const;

/** Due triggers fired, to the committed event. */
export const schedulerFire: Benchmark = {
  id: 'scheduler-fire',
  title: 'Due triggers fired, each with its fire row and its event stored',
  async prepare(laboratory) {
    const small = await prepareTable(laboratory, SMALL);
    const large = await prepareTable(laboratory, LARGE);
    const contestant = (
      who: keyof typeof DOES,
      { table }: typeof small,
      size: number,
      programs: readonly RunningProgram[],
    ) => ({ name: name(who, size), does: DOES[who], measure: () => table.measure(programs) });
    const compare = (title: string, of: string, against: string, atLeast: number) => ({
      ...{ title, of, against },
      goal: { atLeast },
    });
    return {
      unit: 'fires/s',
      maxRounds: 5,
      contestants: [
        contestant(ONE, small, SMALL, small.ours.slice(0, 1)),
        contestant(BARE, small, SMALL, small.bares.slice(0, 1)),
        contestant(TWO, small, SMALL, small.ours),
        contestant(TWO_BARE, small, SMALL, small.bares),
        contestant(ONE, large, LARGE, large.ours),
        contestant(BARE, large, LARGE, large.bares),
      ],
      comparisons: [
        compare('bare loop, 10⁴', name(ONE, SMALL), name(BARE, SMALL), 0.5),
        compare('bare loop, 10⁶', name(ONE, LARGE), name(BARE, LARGE), 0.5),
        compare('10⁶ : 10⁴ triggers', name(ONE, LARGE), name(ONE, SMALL), 0.8),
        compare('two nodes : one', name(TWO, SMALL), name(ONE, SMALL), 1.5),
      ],
      conditions: [
        `${DUE.toLocaleString('en-US')} triggers made due, time until all of them have fired; batches of 10, one connection per process; every batch is a durable commit; nothing is published meanwhile`,
        'For scale: Quartz over JDBC, clustered on PostgreSQL, on another machine with two cores, came to 451 fires/s at 10,000 triggers and 195 at 50,000',
      ],
      close: async () => {
        await Promise.all([small.stop(), large.stop()]);
      },
    };
  },
};
