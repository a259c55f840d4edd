import type { Program } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { eventually, startPrivateRabbitmq } from '@platform/testing';
import { logIn, TaskApi } from '../src/api';
import { rejectedMessages, startPlatform } from '../src/platform';

const START_TIMEOUT_MS = 240_000;
/** Some 20 s as a rule. */
const JOURNEY_TIMEOUT_MS = 180_000;
const FACILITIES = [601, 602, 603, 604, 605, 606];
/** Schedules of each facility while the broker goes or comes back, and while it is away. */
const AROUND = 6;
const DURING = 15;
/** A request answers from the database alone; the broker's silence must not reach it. */
const ANSWER_LIMIT_MS = 5_000;
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
      // Also when a failed test left it stopped, and nothing could be taken away there.
      await broker.stop();
    }
  }, START_TIMEOUT_MS);

  /** Schedules of one journey, and how long the slowest answer took. */
  class Writers {
    readonly created = new Map<number, string[]>(FACILITIES.map((facilityId) => [facilityId, []]));
    slowestMs = 0;

    /**
     * Creates `count` schedules of each facility, one after the other, at the two processes in turn; each is
     * answered 201.
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

  /** What came to the receiving side, by facility, each event at its first coming. */
  async function receivedFirst(facilityId: number): Promise<string[]> {
    for (const { body } of await platform.bus('main').get(OBSERVER, 10_000)) {
      const { message } = JSON.parse(body) as { message: { facilityId: number; scheduleId: string } };
      received.set(message.facilityId, [...(received.get(message.facilityId) ?? []), message.scheduleId]);
    }
    return [...new Set(received.get(facilityId))];
  }

  /** Everything has left the message store, in order, and was applied once by everybody it concerns. */
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

  /** The broker goes while events are on their way to it. */
  const during = (end: () => Promise<unknown>) => (writers: Writers) =>
    Promise.all([writers.create(AROUND), end()]);

  /** Every broker uses more than one byte; it sees a new limit at once. */
  const limitMemory = (...limit: string[]) => broker.server.control('set_vm_memory_high_watermark', ...limit);

  it.each<[string, (writers: Writers) => Promise<unknown>, () => Promise<unknown>]>([
    ['is stopped in order', during(() => broker.server.end('SIGTERM')), () => broker.server.start()],
    ['is killed', during(() => broker.server.end('SIGKILL')), () => broker.server.start()],
    ['takes no messages for want of memory', () => limitMemory('absolute', '1'), () => limitMemory('0.4')],
  ])(
    'answers 201 while the broker %s, and the backlog drains in the order of each facility when it is back',
    async (_how, lose, regain) => {
      const writers = new Writers();
      await lose(writers);
      await writers.create(DURING);
      await readiness(503);
      for (const { url } of replicas) expect((await fetch(`${url}/health/live`)).status).toBe(200);
      const waiting = await outbox();
      expect(waiting.length).toBeGreaterThanOrEqual(FACILITIES.length * DURING);
      // An outage is nobody's refusal.
      expect(waiting.filter(({ attempts }) => attempts > 0)).toEqual([]);
      await regain();
      // What is created while the backlog drains stays behind it.
      await writers.create(AROUND);
      await readiness(200);
      await expectDrained(writers.created);
      expect(writers.slowestMs).toBeLessThan(ANSWER_LIMIT_MS);
    },
    JOURNEY_TIMEOUT_MS,
  );
});
