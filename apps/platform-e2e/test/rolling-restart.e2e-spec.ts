import { eventually } from '@platform/testing';
import { logIn, type Target, TaskApi, Workload } from '../src/api';
import { callJson } from '#platform/callers.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import {
  rejectedMessages,
  SHUTDOWN_GRACE_MS,
  slowDown,
  slowStatements,
  speedUp,
  startPlatform,
} from '../src/platform';

const START_TIMEOUT_MS = 240_000;
/** Timeout of the journey, which usually takes about 20 s. */
const JOURNEY_TIMEOUT_MS = 240_000;
const WORKERS = 4;
/** Number of schedules that must be acknowledged before each signal, as proof of load. */
const BETWEEN_SIGNALS = 15;

describe('SIGTERM of each task-service replica in turn, under load', () => {
  let platform: TestPlatform;
  let carl: string;

  beforeAll(async () => {
    platform = await startPlatform();
    carl = await logIn(platform.url('auth'), 'carl.customer');
  }, START_TIMEOUT_MS);

  afterAll(() => platform.stop(), START_TIMEOUT_MS);

  /** Replaces the process behind a target, like a rolling update. */
  async function replace(target: Target): Promise<void> {
    const replica = platform.programAt(target.url);
    replica.signal('SIGTERM');
    await eventually(async () => expect((await fetch(`${target.url}/health/ready`)).status).toBe(503), {
      intervalMs: 20,
    });
    target.isReady = false;
    expect(await replica.exited()).toBe(0);
    target.url = (await platform.addReplica('task')).url;
    target.isReady = true;
  }

  it(
    'fails no request, and neither loses nor duplicates any effect',
    async () => {
      const targets: Target[] = [platform.url('task'), (await platform.addReplica('task')).url].map(
        (url) => ({
          url,
          isReady: true,
        }),
      );
      const workload = new Workload(targets, carl, WORKERS);
      const waitForMoreSchedules = (): Promise<void> => {
        const minimum = workload.schedules.size + BETWEEN_SIGNALS;
        return eventually(() => expect(workload.schedules.size).toBeGreaterThanOrEqual(minimum));
      };
      for (const target of targets) {
        await waitForMoreSchedules();
        const before = workload.schedules.size;
        await replace(target);
        // The other replica accepted requests throughout.
        expect(workload.schedules.size).toBeGreaterThan(before);
      }
      await waitForMoreSchedules();
      await workload.finish();
      await eventually(() => expectEmptyOutbox(), { timeoutMs: 20_000, intervalMs: 200 });
      await expectSchedulesOnce(workload);
      await expectEventsOnce(workload);
      expect(await rejectedMessages(platform)).toEqual([]);
    },
    JOURNEY_TIMEOUT_MS,
  );

  it(
    'responds to a request accepted before SIGTERM, even after the grace period',
    async () => {
      const { url } = await platform.addReplica('task');
      await slowDown(platform, 'INSERT ON task.schedules', 2 * SHUTDOWN_GRACE_MS);
      const creation = new TaskApi(url, carl, { connection: 'close' }).createSchedule();
      await eventually(async () => expect(await slowStatements(platform)).toBe(1));
      const replica = platform.programAt(url);
      replica.signal('SIGTERM');
      await expect(creation).resolves.toEqual(expect.any(String));
      expect(await replica.exited()).toBe(0);
      await speedUp(platform);
    },
    JOURNEY_TIMEOUT_MS,
  );

  async function expectEmptyOutbox(): Promise<void> {
    expect(await platform.query('task', 'SELECT message_id FROM task.outbox')).toEqual([]);
  }

  /**
   * Checks that exactly the acknowledged schedules exist, each with its instances for 30 days, or 31 if a day
   * began during the test.
   */
  async function expectSchedulesOnce({ schedules }: Workload): Promise<void> {
    const stored = await platform.query<{
      idempotency_key: string;
      schedule_id: string;
      instances: number;
      due: number;
    }>(
      'task',
      `SELECT idempotency_key, schedule_id, count(instance)::int AS instances, count(DISTINCT instance.due_at)::int AS due
       FROM task.schedules LEFT JOIN task.instances AS instance USING (schedule_id) GROUP BY schedule_id, idempotency_key`,
    );
    const ids = stored.map(({ idempotency_key: key, schedule_id: id }) => [key, id] as const);
    expect(ids.toSorted()).toEqual([...schedules].toSorted());
    for (const { instances, due } of stored) {
      expect(due).toBe(instances);
      expect([30, 31]).toContain(instances);
    }
  }

  /**
   * Checks that receivers got exactly one event for each acknowledged schedule and completion, and no others.
   */
  async function expectEventsOnce({ schedules, completions }: Workload): Promise<void> {
    await eventually(async () => {
      const { scheduleCreated } = await callJson<{ scheduleCreated: { record: { scheduleId: string } }[] }>(
        'GET',
        `${platform.url('scheduling')}/events?limit=10000`,
      );
      const passedOn = scheduleCreated.map(({ record }) => record.scheduleId);
      expect(passedOn.toSorted()).toEqual([...schedules.values()].toSorted());
      const received = await callJson<{ completions: { record: { taskInstanceId: string } }[] }>(
        'GET',
        `${platform.url('completions')}/completions?limit=10000`,
      );
      const completed = received.completions.map(({ record }) => record.taskInstanceId);
      expect(completed.toSorted()).toEqual([...completions].toSorted());
    });
  }
});
