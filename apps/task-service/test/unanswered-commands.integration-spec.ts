import { ShutdownRegistry } from '@platform/service-defaults';
import { TcpProxy, eventually } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('a command over the bus', () => {
  let service: TaskFixture;
  let bus: TcpProxy;
  const command = () =>
    service.api
      .post('/task/commands/scheduleRecurringTaskInstanceGeneration')
      .set(PARTNER)
      .send({ facilityId: 501 });

  beforeAll(async () => {
    service = await startTaskService({
      env: { REQUEST_TIMEOUT_MS: '400', TASK_BASE_PATH: '/task' },
      schedulingUrl: async (url) => (bus = await TcpProxy.start(url)).url,
    });
  });
  afterAll(async () => {
    await service.close();
    await bus.stop();
  });

  it('responds with 200, below the base path only', async () => {
    await eventually(() => command().expect(200));
    await service.api.get('/Schedules').set(PARTNER).expect(404);
    const body = { facilityId: 501, name: 'Round', schedule: '0 9 * * *' };
    const created = await service.api.post('/task/Schedules').set(PARTNER).send(body).expect(201);
    await service.api
      .get(created.headers['location'] ?? '')
      .set(PARTNER)
      .expect(200);
  });

  it('responds with 503 while the broker is down, and with 200 afterwards', async () => {
    await bus.refuse();
    const answer = await command().expect(503);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(answer.headers['retry-after']).toBeDefined();
    await bus.restore();
    await eventually(() => command().expect(200), { timeoutMs: 20_000 });
  });

  it('responds with 504 if no reply arrives in time', async () => {
    // The queue still accepts the request, but no replica consumes it.
    for (const hook of service.app.get(ShutdownRegistry).drainHooks) await hook.drain();
    const answer = await command().expect(504);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
  });
});
