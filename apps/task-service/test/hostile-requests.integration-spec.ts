import type { AddressInfo } from 'node:net';
import { describeHostileRequests } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('task-service', () => {
  let service: TaskFixture;
  let id = '';

  beforeAll(async () => {
    service = await startTaskService();
    const body = { facilityId: 501, name: 'Weekly round', schedule: '0 9 * * 1' };
    const { body: schedule } = await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    id = schedule.scheduleId as string;
  });
  afterAll(() => service.close());

  describeHostileRequests({
    service: 'task-service',
    port: () => (service.app.getHttpServer().address() as AddressInfo).port,
    authorization: () => PARTNER.authorization,
    values: () => ({ id }),
  });
});
