import { randomUUID } from 'node:crypto';
import { eventually } from '@platform/testing';
import { TaskCluster } from '../src/platform';

const EXCHANGE = 'Platform.Contracts:TaskInstanceCompletedEvent';
/** A message as stored in the outbox. */
const COMPLETION = {
  taskInstanceId: randomUUID(),
  scheduleId: randomUUID(),
  facilityId: 470,
  dueAtUtc: '2026-01-01T06:00:00.000Z',
  completedAtUtc: '2026-01-01T07:00:00.000Z',
  completedBy: { personId: null, name: 'operator', persona: 1 },
};
const REQUESTS = 'task-service.task-instance-generation';
const ERRORS = `${REQUESTS}_error`;
const START_TIMEOUT_MS = 150_000;
/** Timeout for about ten commands, each in its own process. */
const JOURNEY_TIMEOUT_MS = 240_000;

interface Line {
  messageId: string;
  reason?: string;
  facilityId?: number;
}

describe('the operator’s command line, next to a running task-service', () => {
  let cluster: TaskCluster;

  beforeAll(async () => {
    cluster = await TaskCluster.prepare();
    await cluster.start();
    await eventually(async () => expect(await cluster.bus.queue(REQUESTS)).not.toBeNull());
  }, START_TIMEOUT_MS);
  afterAll(() => cluster.stop(), START_TIMEOUT_MS);

  const runAdmin = async (...args: string[]): Promise<string> => {
    const { exitCode, output } = await cluster.administer(...args);
    expect([args, exitCode, output]).toEqual([args, 0, output]);
    return output;
  };
  const list = async (subject: string): Promise<Line[]> =>
    JSON.parse(await runAdmin(subject, 'list', '--json')) as Line[];
  const idsOf = (lines: readonly Line[]): string[] => lines.map(({ messageId }) => messageId).sort();

  it(
    'lists, shows, replays and discards parked events',
    async () => {
      await cluster.bus.bindQueue(EXCHANGE, 'completions');
      const [replayed, discarded] = [randomUUID(), randomUUID()];
      for (const [id, facilityId] of [
        [replayed, 470],
        [discarded, 471],
      ])
        await cluster.query([
          `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message, attempts,
             last_error, parked_at)
           VALUES (3, $1, $2, 'TaskInstanceCompletedEvent', now(), '{}', $3, 20, 'NO_ROUTE', now())`,
          [facilityId, id, COMPLETION],
        ]);
      expect(idsOf(await list('outbox'))).toEqual([replayed, discarded].sort());
      expect(await runAdmin('outbox', 'show', replayed)).toContain('"name": "operator"');
      expect(await runAdmin('outbox', 'replay', replayed)).toContain('1 replayed');
      expect(await runAdmin('outbox', 'discard', discarded, '--yes')).toContain('1 discarded');
      expect(await list('outbox')).toEqual([]);
      await eventually(async () =>
        expect((await cluster.bus.get('completions', 5)).map(({ body }) => JSON.parse(body).message)).toEqual(
          [COMPLETION],
        ),
      );
    },
    JOURNEY_TIMEOUT_MS,
  );

  it(
    'lists, shows, replays and discards messages in error queues',
    async () => {
      const [replayed, discarded] = [randomUUID(), randomUUID()];
      for (const id of [replayed, discarded])
        await cluster.bus.publish('', {
          routingKey: REQUESTS,
          body: '{"facilityId":"not a number"}',
          properties: { content_type: 'application/json', message_id: id, delivery_mode: 2 },
        });
      const lines = await eventually(
        async () => {
          const found = await list('errors');
          expect(idsOf(found)).toEqual([replayed, discarded].sort());
          return found;
        },
        { timeoutMs: 60_000 },
      );
      expect(lines[0]).toMatchObject({ queue: ERRORS, reason: 'invalid' });
      expect(await runAdmin('errors', 'show', replayed)).toContain('not a number');
      expect(await runAdmin('errors', 'discard', discarded, '--yes')).toContain('1 discarded');
      expect(await runAdmin('errors', 'replay', replayed)).toContain('1 replayed');
      // The service consumed the replayed message and moved it to the error queue again.
      await eventually(async () => expect(idsOf(await list('errors'))).toEqual([replayed]), {
        timeoutMs: 60_000,
      });
      expect(await runAdmin('errors', 'discard', '--all', '--yes')).toContain('1 discarded');
    },
    JOURNEY_TIMEOUT_MS,
  );

  it(
    'exits with 1 if it finds nothing, and with 2 for an unknown command',
    async () => {
      const missing = randomUUID();
      expect(await cluster.administer('outbox', 'replay', missing)).toEqual({
        exitCode: 1,
        output: expect.stringContaining(`not found: ${missing}`),
      });
      expect((await cluster.administer('outbox', 'lst')).exitCode).toBe(2);
    },
    JOURNEY_TIMEOUT_MS,
  );
});
