import { randomUUID } from 'node:crypto';
import { Persona } from '@platform/personas';
import { bearer, eventually } from '@platform/testing';
import { CUSTOMER, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** More commands than may wait for one target. */
const FOREIGN_COMMANDS = 60;
/** A customer of another facility. */
const STRANGER = bearer({ sub: 'personid:1777', personas: Persona.Customer, facilities: [777] });

describe('commands of a caller without authority over their target', () => {
  let service: TaskFixture;
  let scheduleId: string;
  let instanceId: string;

  beforeAll(async () => {
    service = await startTaskService();
    const body = { facilityId: 501, name: 'Round', schedule: '0 9 * * *' };
    scheduleId = (await service.api.post('/Schedules').set(PARTNER).send(body).expect(201)).body.scheduleId;
    const [instance] = await service.database.query<{ id: string }>(
      `INSERT INTO task.instances (schedule_id, facility_id, name, due_at) VALUES ($1, 501, 'Round', now() - interval '1 hour')
       RETURNING task_instance_id AS id`,
      [scheduleId],
    );
    instanceId = instance!.id;
  });
  afterEach(() => service.database.query('ROLLBACK'));
  afterAll(() => service.close());

  const pathOf = (target: 'instance' | 'schedule'): string =>
    target === 'instance'
      ? `/Instances/${instanceId}/commands/complete`
      : `/Schedules/${scheduleId}/commands/pause`;

  it.each([
    ['instance', 'SELECT 1 FROM task.instances WHERE facility_id = 501 FOR UPDATE'],
    ['schedule', 'SELECT 1 FROM task.schedules WHERE facility_id = 501 FOR UPDATE'],
  ] as const)(
    'are refused before they wait for the %s, so that an authorised caller gets its turn',
    async (target, lock) => {
      await service.database.query('BEGIN');
      await service.database.query(lock);
      const command = async (token: typeof CUSTOMER): Promise<number> =>
        (await service.api.post(pathOf(target)).set(token).send()).status;
      const statuses: number[] = [];
      const foreign = Array.from({ length: FOREIGN_COMMANDS }, async () => {
        statuses.push(await command(STRANGER));
      });
      await eventually(() => {
        // None waits, and none is refused because the queue is full.
        expect(statuses).toHaveLength(FOREIGN_COMMANDS);
        expect([...new Set(statuses)]).toEqual([403]);
      });
      const rightful = command(CUSTOMER);
      await eventually(async () => expect(await waitingForLocks()).toBe(1));
      await service.database.query('COMMIT');
      expect(await rightful).toBe(200);
      await Promise.all(foreign);
    },
    60_000,
  );

  it('are a 404 if the target does not exist', async () => {
    const none = randomUUID();
    const paths = [
      `/Instances/${none}/commands/complete`,
      `/Instances/${none}/commands/cancel`,
      `/Schedules/${none}/commands/pause`,
    ];
    for (const path of paths) await service.api.post(path).set(STRANGER).send().expect(404);
  });

  async function waitingForLocks(): Promise<number> {
    const rows = await service.database.querySuperuser(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rows.length;
  }
});
