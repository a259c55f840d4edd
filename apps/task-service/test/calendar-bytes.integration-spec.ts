import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { ReconciliationRepository } from '../src/reconciliation/reconciliation.repository';
import { GeneratingSchedulesRepository } from '../src/stored-schedules/generating-schedules.repository';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const DAY_MS = 86_400_000;
const FACILITY_ID = 46_001;
const SCHEDULES = 40;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';
/** All days of ten years, the maximum of a calendar. */
const DATES = Array.from({ length: 3_660 }, (_none, index) =>
  new Date(Date.now() + index * DAY_MS).toISOString().slice(0, 10),
);
const CALENDAR_BYTES = DATES.join(',').length;

/** Returns the bytes that the connection of a transaction has received. */
async function receivedBytes(manager: EntityManager): Promise<number> {
  const client = (await manager.queryRunner?.connect()) as { connection: { stream: Socket } };
  return client.connection.stream.bytesRead;
}

describe('schedules that share a calendar of 3,660 dates', () => {
  let service: TaskFixture;

  beforeAll(async () => {
    service = await startTaskService();
    const calendarId = randomUUID();
    const calendar = { name: 'Holidays', excludedDates: DATES };
    await service.api.put(`/Calendars/${calendarId}`).set(PARTNER).send(calendar).expect(200);
    for (let created = 0; created < SCHEDULES; created += 1) {
      const body = { facilityId: FACILITY_ID, name: 'Round', schedule: '0 9 * * *', calendarId };
      await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    }
  });
  afterAll(() => service.close());

  it('are locked for generation with one read of the dates, which all of them share', async () => {
    const { locked, bytes } = await service.app.get(DataSource).transaction(async (manager) => {
      const before = await receivedBytes(manager);
      const schedules = await service.app
        .get(GeneratingSchedulesRepository)
        .lockForGeneration(manager, { facilityId: FACILITY_ID }, null);
      return { locked: schedules, bytes: (await receivedBytes(manager)) - before };
    });
    expect(locked).toHaveLength(SCHEDULES);
    for (const { excludedDates } of locked) expect(excludedDates).toEqual(DATES);
    expect(bytes).toBeGreaterThan(CALENDAR_BYTES);
    expect(bytes).toBeLessThan(2 * CALENDAR_BYTES);
  });

  it('are examined by reconciliation with one read of the dates, which all of them share', async () => {
    const repository = service.app.get(ReconciliationRepository);
    const { examined, bytes } = await service.app.get(DataSource).transaction(async (manager) => {
      const before = await receivedBytes(manager);
      const options = { graceMinutes: 0, horizonDays: 30, limit: 1_000 };
      const schedules = await repository.examine(manager, BEFORE_ALL, options);
      return { examined: schedules, bytes: (await receivedBytes(manager)) - before };
    });
    expect(examined).toHaveLength(SCHEDULES);
    for (const { suspicion, excludedDates } of examined)
      expect({ suspicion, excludedDates }).toEqual({ suspicion: 'nothing-generated', excludedDates: DATES });
    expect(bytes).toBeLessThan(2 * CALENDAR_BYTES);
  });
});
