import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Program, SERVICE_NAMES } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { eventually } from '@platform/testing';
import { type Instance, logIn, TaskApi } from '../src/api';
import { describedMetrics } from '../src/examples';
import { rejectedMessages, SHUTDOWN_GRACE_MS, startPlatform } from '../src/platform';

const JOURNEY_TIMEOUT_MS = 90_000;
/** Time for closing connections after the grace period, on a busy machine. */
const CLOSING_MS = 8_000;

describe('two replicas', () => {
  let platform: TestPlatform;
  let carl: string;

  beforeAll(async () => {
    platform = await startPlatform();
    carl = await logIn(platform.url('auth'), 'carl.customer');
  }, JOURNEY_TIMEOUT_MS);

  afterAll(() => platform.stop(), JOURNEY_TIMEOUT_MS);

  it.each(SERVICE_NAMES)('of %s expose every metric that docs/operations.md describes', async (name) => {
    const operations = await readFile(join(__dirname, '../../../docs/operations.md'), 'utf8');
    const described = describedMetrics(operations, `${name}-service`);
    expect(described).toContain('http_request_duration_seconds');
    const address = `${platform.url(`${name}-metrics`)}/metrics`;
    const text = await (await fetch(address)).text();
    expect(described.filter((metric) => !text.includes(`# TYPE ${metric} `))).toEqual([]);
  });

  function task(replica: { url: string }): TaskApi {
    return new TaskApi(replica.url, carl);
  }

  function dueInstants(instances: readonly Instance[]): string[] {
    return instances.map(({ dueAtUtc }) => dueAtUtc);
  }

  describe('of the task service', () => {
    const replicas: Program[] = [];

    beforeAll(async () => {
      replicas.push(platform.programAt(platform.url('task')), await platform.addReplica('task'));
    }, JOURNEY_TIMEOUT_MS);

    it('apply the event of each schedule once, whichever replica created it', async () => {
      const created = await Promise.all(
        Array.from({ length: 10 }, async (_, index) => {
          const [here, there] = index % 2 === 0 ? replicas : replicas.toReversed();
          if (here === undefined || there === undefined) throw new Error('two replicas are running');
          return { scheduleId: await task(here).createSchedule(), there };
        }),
      );
      for (const { scheduleId, there } of created) {
        const instances = await eventually(async () => {
          const found = await task(there).instances(scheduleId);
          expect(found.length).toBeGreaterThanOrEqual(29);
          return found;
        });
        expect(new Set(dueInstants(instances)).size).toBe(instances.length);
      }
      expect(await rejectedMessages(platform)).toEqual([]);
    });

    it('create one schedule for one Idempotency-Key used on both at once', async () => {
      const key = `both-${String(process.pid)}`;
      const ids = await Promise.all(
        [...replicas, ...replicas].map((replica) => task(replica).createSchedule(key)),
      );
      expect(new Set(ids).size).toBe(1);
    });

    it('complete an instance once for concurrent requests to both', async () => {
      const [first, second] = replicas as [Program, Program];
      const scheduleId = await task(first).createSchedule();
      const [instance] = await eventually(async () => {
        const found = await task(second).instances(scheduleId);
        expect(found).not.toHaveLength(0);
        return found;
      });
      const { taskInstanceId } = instance as Instance;
      const responses = await Promise.all(
        [first, second, first, second].map((replica) => task(replica).complete(taskInstanceId)),
      );
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      await eventually(async () => {
        const completions = await fetch(
          `${platform.url('completions')}/completions?taskInstanceId=${taskInstanceId}`,
        );
        expect(((await completions.json()) as { completions: unknown[] }).completions).toHaveLength(1);
      });
    });

    it('continue when one of them is killed', async () => {
      const [survivor, victim] = replicas as [Program, Program];
      const scheduleId = await task(victim).createSchedule();
      await victim.stop('SIGKILL');
      // Messages held by the killed replica are redelivered once broker and database notice its lost
      // connections.
      await eventually(async () => expect(await task(survivor).instances(scheduleId)).not.toHaveLength(0), {
        timeoutMs: 25_000,
      });
    });
  });

  it.each(SERVICE_NAMES)(
    'stop one %s service gracefully on SIGTERM: not ready at once, then exit code 0',
    async (name) => {
      const replica = await platform.addReplica(name);
      const signalledAtMs = performance.now();
      replica.signal('SIGTERM');
      await eventually(async () => expect((await fetch(`${replica.url}/health/ready`)).status).toBe(503), {
        timeoutMs: SHUTDOWN_GRACE_MS,
        intervalMs: 20,
      });
      expect((await fetch(`${replica.url}/health/live`)).status).toBe(200);
      expect(await replica.exited()).toBe(0);
      const tookMs = performance.now() - signalledAtMs;
      expect(tookMs).toBeGreaterThanOrEqual(SHUTDOWN_GRACE_MS);
      expect(tookMs).toBeLessThan(SHUTDOWN_GRACE_MS + CLOSING_MS);
      expect((await fetch(`${platform.url(name)}/health/ready`)).status).toBe(200);
    },
  );
});
