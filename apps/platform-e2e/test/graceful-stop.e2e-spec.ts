import { randomUUID } from 'node:crypto';
import { eventually } from '@platform/testing';
import { slowDown, slowStatements, speedUp, TaskCluster } from '../src/platform';

const QUEUE = 'task-service.task-instance-generation';
const PREPARE_TIMEOUT_MS = 60_000;
const JOURNEY_TIMEOUT_MS = 240_000;
const FACILITY = 501;
/** Below 10 s, after which the server cancels a statement of the service. */
const LONG_MS = 9_000;
const SHORT_MS = 3_000;

describe('SIGTERM of a task-service process that is processing a message', () => {
  let cluster: TaskCluster;

  beforeEach(async () => {
    cluster = await TaskCluster.prepare({ expectedError: 'took over 1000 ms' });
    await cluster.query([
      `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until,
         created_by_subject, created_by_persona, request_digest)
       VALUES (gen_random_uuid(), $1, 'n', '0 6 * * *', 'UTC', now(), 's', 1, 'd')`,
      [FACILITY],
    ]);
  }, PREPARE_TIMEOUT_MS);
  afterEach(() => cluster.stop(), PREPARE_TIMEOUT_MS);

  const instances = () => cluster.query('SELECT 1 FROM task.instances');
  const waiting = async () => (await cluster.bus.get(QUEUE, 10)).length;

  /** Sends a message whose handler takes `durationMs`, and waits until it is in progress. */
  async function occupy(durationMs: number): Promise<void> {
    const { platform, bus } = cluster;
    await slowDown(platform, 'INSERT ON task.instances', durationMs);
    const body = {
      facilityId: FACILITY,
      scheduledFireTimeUtc: '2026-01-05T02:00:00Z',
      fireTimeUtc: '2026-01-05T02:00:00Z',
      misfired: false,
      missedCount: 0,
    };
    await eventually(async () => expect(await bus.queue(QUEUE)).not.toBeNull());
    await bus.publish('', {
      routingKey: QUEUE,
      body: JSON.stringify(body),
      properties: { content_type: 'application/json', message_id: randomUUID(), delivery_mode: 2 },
    });
    await eventually(async () => expect(await slowStatements(platform)).toBe(1));
  }

  it(
    'finishes the message, which is not delivered again',
    async () => {
      const running = await cluster.start();
      await occupy(SHORT_MS);
      expect(await running.stop('SIGTERM')).toBe(0);
      expect(await slowStatements(cluster.platform)).toBe(0);
      expect((await instances()).length).toBeGreaterThanOrEqual(30);
      expect(await waiting()).toBe(0);
    },
    JOURNEY_TIMEOUT_MS,
  );

  it(
    'returns the message to the queue if time runs out, and another process handles it once',
    async () => {
      const running = await cluster.start(0, { SHUTDOWN_TIMEOUT_MS: '1000' });
      await occupy(LONG_MS);
      await running.stop('SIGTERM');
      // The process ended before its statement.
      expect(await slowStatements(cluster.platform)).toBe(1);
      // Waits for the end of the statement. Its transaction is rolled back, because its client is gone.
      await speedUp(cluster.platform);
      expect(await instances()).toEqual([]);
      await cluster.start();
      await eventually(async () => expect((await instances()).length).toBeGreaterThanOrEqual(30), {
        timeoutMs: 20_000,
      });
      expect(await waiting()).toBe(0);
    },
    JOURNEY_TIMEOUT_MS,
  );
});
