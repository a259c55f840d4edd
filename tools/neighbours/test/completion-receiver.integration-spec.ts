import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@platform/testing';
import { RunningNeighbours } from './running-neighbours';
import type { Entry } from './running-neighbours';

interface Completions {
  completions: Entry[];
  total: number;
}

describe('completion receiver', () => {
  let neighbours: RunningNeighbours;

  beforeEach(async () => {
    neighbours = await RunningNeighbours.open();
  });

  afterEach(() => neighbours.close());

  function completed(): Record<string, unknown> & { taskInstanceId: string } {
    return {
      taskInstanceId: randomUUID(),
      scheduleId: randomUUID(),
      facilityId: 502,
      dueAtUtc: '2026-01-05T07:00:00Z',
      completedAtUtc: '2026-01-05T10:00:00Z',
      completedBy: { personId: null, name: 'Ivy Internal', persona: 1 },
    };
  }

  it('lists each completion once, however often it is delivered, and across a restart', async () => {
    let receiver = await neighbours.receiver();
    const [first, second, messageId] = [completed(), completed(), randomUUID()];
    for (let delivery = 0; delivery < 3; delivery += 1)
      await neighbours.publish('TaskInstanceCompletedEvent', first, messageId);
    await neighbours.publish('TaskInstanceCompletedEvent', second, randomUUID());
    await eventually(async () =>
      expect(await neighbours.get(receiver, '/completions')).toMatchObject({ total: 2, duplicates: 2 }),
    );
    await neighbours.stop(receiver);
    receiver = await neighbours.receiver();
    const { completions } = await neighbours.get<Completions>(
      receiver,
      `/completions?taskInstanceId=${first.taskInstanceId}`,
    );
    expect(completions).toHaveLength(1);
    expect(completions[0]).toMatchObject({ id: messageId, record: first });
    const lines = (await readFile(join(neighbours.folder, 'completions.jsonl'), 'utf8')).trim().split('\n');
    expect(lines).toHaveLength(2);
  });

  it('receives what is published after it lost its connection', async () => {
    const receiver = await neighbours.receiver();
    // The broker's list of connections lags, so connections are closed again and again until the receiver
    // loses its own.
    await eventually(async () => {
      await neighbours.broker.management.closeConnections();
      expect((await receiver.server.inject('/health/ready')).statusCode).toBe(503);
    });
    await neighbours.publish('TaskInstanceCompletedEvent', completed(), randomUUID());
    await eventually(
      async () => expect(await neighbours.get(receiver, '/completions')).toMatchObject({ total: 1 }),
      {
        timeoutMs: 20_000,
      },
    );
  });

  it('is ready only as long as it is not stopping', async () => {
    const receiver = await neighbours.receiver();
    expect((await receiver.server.inject('/health/ready')).statusCode).toBe(200);
    receiver.markStopping();
    expect((await receiver.server.inject('/health/ready')).statusCode).toBe(503);
  });
});
