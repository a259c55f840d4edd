import type { AddressInfo } from 'node:net';
import { describeHostileRequests } from '@platform/testing';
import { DataSource } from 'typeorm';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const FACILITY_ID = 501;

describe('task-service', () => {
  let service: TaskFixture;
  let scheduleId = '';
  let removedScheduleId = '';
  let instanceIds: string[] = [];

  async function createSchedule(schedule: string): Promise<string> {
    const body = { facilityId: FACILITY_ID, name: 'Round', schedule };
    const created = await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    return created.body.scheduleId as string;
  }

  beforeAll(async () => {
    service = await startTaskService();
    const hourly = await createSchedule('0 * * * *');
    await service.app
      .get(DataSource)
      .transaction((manager) =>
        service.app.get(InstanceGenerationService).generate(manager, { facilityId: FACILITY_ID }),
      );
    const instances = await service.database.query<{ id: string }>(
      'SELECT task_instance_id AS id FROM task.instances WHERE schedule_id = $1',
      [hourly],
    );
    instanceIds = instances.map(({ id }) => id);
    scheduleId = await createSchedule('0 9 * * 1');
    removedScheduleId = await createSchedule('0 9 * * 1');
  });
  afterAll(() => service.close());

  describeHostileRequests({
    service: 'task-service',
    port: () => (service.app.getHttpServer().address() as AddressInfo).port,
    authorization: () => PARTNER.authorization,
    // Each successful command needs an instance of its own.
    values: () => ({
      id: scheduleId,
      'removeSchedule.id': removedScheduleId,
      'getInstance.id': instanceIds.at(0) ?? '',
      'cancelInstance.id': instanceIds.slice(0, 200),
      'completeInstance.id': instanceIds.slice(200),
    }),
    succeeding: ['getInstance', 'cancelInstance', 'completeInstance'],
  });
});
