import { ScheduleCreatedEvent } from '@platform/contracts';
import { eventually } from '@platform/testing';
import { partitionOf } from '../src/outbound/outbound-event';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const BUSY = 501;
const [NEIGHBOUR = 0, ...NEIGHBOURS] = Array.from({ length: 200 }, (_, index) => 9_000 + index).filter(
  (facilityId) => partitionOf(facilityId) === partitionOf(BUSY),
);
const BACKLOG = 15_000;

describe('facilities that share a partition of the outbox', () => {
  let service: TaskFixture;

  const post = async (facilityId: number): Promise<string> => {
    const body = { facilityId, name: 'Round', schedule: '0 9 * * 1' };
    return (await service.api.post('/Schedules').set(PARTNER).send(body).expect(201)).body.scheduleId;
  };
  const store = (facilityId: number, count: number) =>
    service.database.query(
      `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
       SELECT $1, $2::bigint, gen_random_uuid(), 'ScheduleCreatedEvent', now(), '{}', json_build_object('scheduleId', gen_random_uuid(),
         'facilityId', $2::bigint, 'name', n::text, 'schedule', '0 9 * * 1', 'timeZone', 'UTC', 'createdAtUtc', '2026-01-01T00:00:00Z',
         'createdBy', json_build_object('personId', null, 'name', null, 'persona', 1))
       FROM generate_series(1, $3::int) AS n ORDER BY n`,
      [partitionOf(BUSY), facilityId, count],
    );
  const waiting = async (facilityId: number): Promise<number> => {
    const rows = await service.database.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM task.outbox WHERE facility_id = $1',
      [facilityId],
    );
    return rows[0]?.count ?? 0;
  };
  const published = async (facilityId: number): Promise<string[]> => {
    const events = await service.received(ScheduleCreatedEvent, 0);
    return events.flatMap(({ message }) => (message.facilityId === facilityId ? [message.name] : []));
  };
  const hasLeft = (facilityId: number) =>
    eventually(async () => expect(await waiting(facilityId)).toBe(0), { timeoutMs: 60_000 });

  beforeAll(async () => {
    service = await startTaskService({ replicas: 2 });
    await service.watch(ScheduleCreatedEvent);
  });
  afterAll(() => service.close());

  it('do not wait for the backlog of one of them, whose order is kept', async () => {
    await store(BUSY, BACKLOG);
    for (let round = 0; round < 3; round += 1) {
      await post(NEIGHBOUR);
      const storedAt = performance.now();
      await hasLeft(NEIGHBOUR);
      expect(performance.now() - storedAt).toBeLessThan(2_000);
      expect(await waiting(BUSY)).toBeGreaterThan(BACKLOG / 10);
    }
    await service.database.query(
      `DELETE FROM task.outbox WHERE facility_id = $1 AND (message->>'name')::int > 1000`,
      [BUSY],
    );
    await hasLeft(BUSY);
    const names = (await published(BUSY)).map(Number);
    expect(names.length).toBeGreaterThanOrEqual(1_000);
    const firstTimes = [...new Set(names)];
    expect(firstTimes).toEqual(Array.from({ length: firstTimes.length }, (_, index) => index + 1));
  }, 120_000);

  it('are all published in turn, even if many have a backlog', async () => {
    await store(BUSY, BACKLOG);
    for (const facilityId of NEIGHBOURS) await store(facilityId, 60);
    await store(NEIGHBOUR, 3);
    await hasLeft(NEIGHBOUR);
    for (const facilityId of NEIGHBOURS) await hasLeft(facilityId);
    expect(await waiting(BUSY)).toBeGreaterThan(BACKLOG / 10);
    for (const facilityId of NEIGHBOURS)
      expect([...new Set(await published(facilityId))]).toEqual(
        Array.from({ length: 60 }, (_, index) => String(index + 1)),
      );
    await service.database.query('DELETE FROM task.outbox WHERE facility_id = $1', [BUSY]);
  }, 120_000);
});
