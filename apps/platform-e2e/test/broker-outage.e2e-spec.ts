import type { Program } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { eventually, startPrivateRabbitmq } from '@platform/testing';
import { logIn, TaskApi } from '../src/api';
import { rejectedMessages, startPlatform } from '../src/platform';

const START_TIMEOUT_MS = 240_000;
/** Timeout of one journey, which usually takes about 20 s. */
const JOURNEY_TIMEOUT_MS = 180_000;
const FACILITIES = [601, 602, 603, 604, 605, 606];
/**
 * Schedules per facility while the broker stops or returns (AROUND), and while it is unavailable (DURING).
 */
const AROUND = 6;
const DURING = 15;
/**
 * Maximum time of a response. Requests need only the database, so an unavailable broker must not delay them.
 */
const MAX_RESPONSE_MS = 5_000;
const OBSERVER = 'observer';

describe('an outage of the broker, with two task-service processes', () => {
  let broker: Awaited<ReturnType<typeof startPrivateRabbitmq>>;
  let platform: TestPlatform;
  let replicas: Program[];
  let ivy: string;
  const received = new Map<number, string[]>();

  beforeAll(async () => {
    broker = await startPrivateRabbitmq();
    platform = await startPlatform({ broker: broker.server });
    replicas = [platform.programAt(platform.url('task')), await platform.addReplica('task')];
    ivy = await logIn(platform.url('auth'), 'ivy.internal');
    await platform.bus('main').bindQueue('Platform.Contracts:ScheduleCreatedEvent', OBSERVER);
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    try {
      await platform.stop();
    } finally {
      // Stops the broker even if platform.stop() fails, which cannot delete its virtual hosts when a failed
      // test has left the broker stopped.
      await broker.stop();
    }
  }, START_TIMEOUT_MS);

  /** Creates schedules, and measures the slowest response. */
  class Writers {
    readonly created = new Map<number, string[]>(FACILITIES.map((facilityId) => [facilityId, []]));
    slowestMs = 0;

    /**
     * Creates `count` schedules per facility, one after the other, at the two processes in turn. Each request
     * must be answered with 201.
     */
    async create(count: number): Promise<void> {
      await Promise.all(
        [...this.created].map(async ([facilityId, ids]) => {
          for (let turn = 0; turn < count; turn += 1) {
            const { url } = replicas[turn % replicas.length] as Program;
            const startedAtMs = performance.now();
            ids.push(await new TaskApi(url, ivy).createSchedule(undefined, facilityId));
            this.slowestMs = Math.max(this.slowestMs, performance.now() - startedAtMs);
          }
        }),
      );
    }
  }

  const readiness = (expected: number) =>
    eventually(
      async () => {
        for (const { url } of replicas) expect((await fetch(`${url}/health/ready`)).status).toBe(expected);
      },
      { timeoutMs: 60_000 },
    );

  const outbox = () =>
    platform.query<{ attempts: number; parked_at: Date | null }>(
      'task',
      'SELECT attempts, parked_at FROM task.outbox',
    );

  /**
   * Returns the schedule ids that the observer received for a facility, in the order of their first arrival.
   */
  async function receivedFirst(facilityId: number): Promise<string[]> {
    for (const { body } of await platform.bus('main').get(OBSERVER, 10_000)) {
      const { message } = JSON.parse(body) as { message: { facilityId: number; scheduleId: string } };
      received.set(message.facilityId, [...(received.get(message.facilityId) ?? []), message.scheduleId]);
    }
    return [...new Set(received.get(facilityId))];
  }

  /** Checks that the outbox is empty, that events arrived in order, and that each was applied once. */
  async function expectDrained(created: ReadonlyMap<number, string[]>): Promise<void> {
    await eventually(async () => expect(await outbox()).toEqual([]), { timeoutMs: 60_000, intervalMs: 200 });
    for (const [facilityId, ids] of created) {
      const first = await receivedFirst(facilityId);
      expect(first.filter((id) => ids.includes(id))).toEqual(ids);
    }
    const ids = [...created.values()].flat();
    await eventually(
      async () => {
        const schedules = await platform.query<{ instances: number; due: number }>('task', [
          `SELECT count(*)::int AS instances, count(DISTINCT due_at)::int AS due FROM task.instances
           WHERE schedule_id = ANY ($1) GROUP BY schedule_id`,
          [ids],
        ]);
        expect(schedules).toHaveLength(ids.length);
        for (const { instances, due } of schedules) {
          expect(due).toBe(instances);
          expect([30, 31]).toContain(instances);
        }
      },
      { timeoutMs: 60_000, intervalMs: 200 },
    );
    expect(await rejectedMessages(platform)).toEqual([]);
  }

  /** Creates schedules while the broker stops, so that events are in flight. */
  const during = (end: () => Promise<unknown>) => (writers: Writers) =>
    Promise.all([writers.create(AROUND), end()]);

  /** With a limit of 1 byte the broker blocks publishers at once. */
  const limitMemory = (...limit: string[]) => broker.server.control('set_vm_memory_high_watermark', ...limit);

  it.each<[string, (writers: Writers) => Promise<unknown>, () => Promise<unknown>]>([
    ['is stopped gracefully', during(() => broker.server.end('SIGTERM')), () => broker.server.start()],
    ['is killed', during(() => broker.server.end('SIGKILL')), () => broker.server.start()],
    [
      'blocks publishers because of its memory limit',
      () => limitMemory('absolute', '1'),
      () => limitMemory('0.4'),
    ],
  ])(
    'responds 201 while the broker %s, and drains the backlog in order per facility when it is back',
    async (_how, breakBroker, restoreBroker) => {
      const writers = new Writers();
      await breakBroker(writers);
      await writers.create(DURING);
      await readiness(503);
      for (const { url } of replicas) expect((await fetch(`${url}/health/live`)).status).toBe(200);
      const waiting = await outbox();
      expect(waiting.length).toBeGreaterThanOrEqual(FACILITIES.length * DURING);
      // An outage does not count as a failed attempt.
      expect(waiting.filter(({ attempts }) => attempts > 0)).toEqual([]);
      await restoreBroker();
      // Events created while the backlog drains must arrive after it.
      await writers.create(AROUND);
      await readiness(200);
      await expectDrained(writers.created);
      expect(writers.slowestMs).toBeLessThan(MAX_RESPONSE_MS);
    },
    JOURNEY_TIMEOUT_MS,
  );
});
