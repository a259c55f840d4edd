import { eventually, testSize } from '@platform/testing';
import { Random } from '#platform/random.ts';
import { TaskCluster } from '../src/platform';

const QUEUE = 'task-service.task-instance-generation';
/** Number of due triggers per case. Source of the full size: the reliability goals. */
const TRIGGERS = testSize('TEST_DUE_TRIGGERS', { quick: 2_000, full: 10_000 });
/** Usually about 35 s at full size, but far longer on a busy machine. */
const LIMIT_MS = Math.max(300_000, 60 * TRIGGERS);

const DAY_MS = 86_400_000;

/** Number of facilities with a schedule, whose instances would show a trigger applied twice. */
const WITH_SCHEDULE = 200;

describe('a cluster of task-service processes', () => {
  let cluster: TaskCluster;

  beforeEach(async () => {
    cluster = await TaskCluster.prepare();
  }, 60_000);
  afterEach(() => cluster.stop(), 60_000);

  async function addDueTriggers(count: number): Promise<void> {
    await cluster.query([
      `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
       SELECT id, 'facility-' || id, 'TaskInstanceGeneration', 'GenerateTaskInstancesSchedule', '0 0 1 1 *', 'UTC',
         date_trunc('minute', now()) - (id % 80) * interval '1 minute'
       FROM generate_series(1, $1::bigint) AS id`,
      [count],
    ]);
    await cluster.query([
      `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until,
         created_by_subject, created_by_persona, request_digest)
       SELECT gen_random_uuid(), id, 'n', '0 6 * * *', 'UTC', now(), 's', 1, 'd' FROM generate_series(1, $1::bigint) AS id`,
      [WITH_SCHEDULE],
    ]);
  }

  async function count(from: string): Promise<number> {
    const [row] = await cluster.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${from}`);
    return row?.count ?? 0;
  }

  /** Kills one process after another, or suspends it for a while, until `isOver`. */
  async function disturb(random: Random, isOver: () => Promise<boolean>): Promise<string[]> {
    const done: string[] = [];
    while (!(await isOver())) {
      const victim = random.pick(cluster.processes);
      await letTimePass(random.integer(100, 1_000));
      const isKill = random.chance(0.5);
      done.push(isKill ? 'kill -9' : 'SIGSTOP');
      if (isKill) {
        await victim.stop('SIGKILL');
        await victim.start();
      } else {
        victim.signal('SIGSTOP');
        await letTimePass(random.integer(200, 2_000));
        victim.signal('SIGCONT');
      }
    }
    return done;
  }

  it.each([
    { replicas: 2, triggers: TRIGGERS, seed: 20_260_329 },
    { replicas: 3, triggers: TRIGGERS, seed: 20_261_025 },
  ])(
    'of $replicas fires each of $triggers due triggers once, despite kills, suspensions and clocks an hour apart (seed $seed)',
    async ({ replicas, triggers, seed }) => {
      // Clocks at −1 h, 0 and +1 h relative to the database.
      for (let index = 0; index < replicas; index += 1) await cluster.start(index - 1);
      await addDueTriggers(triggers);
      // Faults occur until 80 % of the messages are applied, so that they hit firing, publishing and
      // applying.
      const isOver = async () => (await count('task.inbox')) >= 0.8 * triggers;
      expect((await disturb(new Random(seed), isOver)).length).toBeGreaterThanOrEqual(3);
      await eventually(
        async () => {
          expect(await count('task.outbox')).toBe(0);
          expect(await count(`task.inbox WHERE queue = '${QUEUE}'`)).toBe(triggers);
        },
        { timeoutMs: 0.8 * LIMIT_MS, intervalMs: 500 },
      );
      // One fire per facility, at its due time, none marked as a misfire because of a node's clock, and every
      // message applied.
      expect(await count('task.fires')).toBe(triggers);
      expect(await count('(SELECT DISTINCT facility_id FROM task.fires) AS f')).toBe(triggers);
      expect(await count('task.fires WHERE misfired')).toBe(0);
      expect(
        await count(
          `task.fires WHERE NOT EXISTS (SELECT 1 FROM task.inbox WHERE queue = '${QUEUE}' AND message_id = fires.message_id::text)`,
        ),
      ).toBe(0);
      expect(await count(`task.triggers WHERE state <> 'WAITING' OR next_fire_at <= now()`)).toBe(0);
      // Instances are generated once, up to the fire after next: January 1 of the year after next. One day
      // more or less if a day began during the test.
      const [instances] = await cluster.query<{ least: number; most: number }>(
        `SELECT min(count)::int AS least, max(count)::int AS most FROM (
           SELECT (SELECT count(*) FROM task.instances WHERE schedule_id = schedule.schedule_id) FROM task.schedules AS schedule) AS c`,
      );
      const days = (Date.UTC(new Date().getUTCFullYear() + 2, 0, 1) - Date.now()) / DAY_MS;
      expect(instances?.least).toBeGreaterThanOrEqual(Math.floor(days));
      expect(instances?.most).toBeLessThanOrEqual(Math.ceil(days));
      for (const queue of await cluster.bus.queues())
        if (/_(error|skipped)$/.test(queue)) expect(await cluster.bus.get(queue, 1)).toEqual([]);
    },
    LIMIT_MS,
  );
});

/**
 * Lets time pass while a process runs or is suspended. A fixed delay is intended here: the fault must hit at
 * any moment.
 */
async function letTimePass(durationMs: number): Promise<void> {
  const endsAtMs = performance.now() + durationMs;
  await eventually(() => expect(performance.now()).toBeGreaterThanOrEqual(endsAtMs), { intervalMs: 20 });
}
