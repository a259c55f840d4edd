import { PurgeInboxJob } from '@platform/messaging';
import { Metrics } from '@platform/service-defaults';
import { apiDocument, eventually, wrongRefusals } from '@platform/testing';
import { SchedulerService } from '../src/scheduler/scheduler.service';
import { CUSTOMER, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('the running service', () => {
  let service: TaskFixture;
  beforeAll(async () => {
    service = await startTaskService();
  });
  afterAll(() => service.close());

  it('responds to a ping without a token with the JSON string "pong"', async () => {
    const answer = await service.api.get('/diagnostics/ping').expect(200);
    expect(answer.text).toBe('"pong"');
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
  });

  it('refuses missing tokens and unusable bodies as the API document says, on every operation', async () => {
    expect(await wrongRefusals('task-service', await service.app.getUrl())).toEqual([]);
  });

  it.each([
    ['get', '/Instances/1', 400],
    ['get', '/Triggers?pageSize=0', 400],
    ['post', '/Triggers/x/commands/pause', 400],
    ['post', '/Triggers/x/commands/resume', 400],
    ['post', '/Triggers/999/commands/resume', 404],
    ['post', '/commands/unscheduleRecurringTaskInstanceGeneration', 400],
    ['get', '/health/startup', 200],
  ] as const)('responds to %s %s with %d', async (method, path, status) => {
    await service.api[method](path).set(PARTNER).expect(status);
  });

  it('lets only InternalPartner pause a trigger', async () => {
    await service.api.post('/Triggers/501/commands/pause').set(CUSTOMER).expect(403);
  });

  it('purges old inbox rows with its own database role, and counts the run', async () => {
    await service.database.query(`
      INSERT INTO task.inbox (queue, message_id, message_name, applied_at)
      VALUES ('q', 'old', 'm', now() - interval '31 days'), ('q', 'recent', 'm', now() - interval '29 days')`);
    // The inbox exists only after the consumers have started.
    await eventually(async () => {
      await service.app.get(PurgeInboxJob).run();
      const left = await service.database.query("SELECT message_id FROM task.inbox WHERE queue = 'q'");
      expect(left).toEqual([{ message_id: 'recent' }]);
    });
    expect(await service.app.get(Metrics).registry.metrics()).toContain(
      'recurring_job_consecutive_failures{recurring_job="PurgeInboxJob"} 0',
    );
  });

  it('serves the committed API document', async () => {
    const { body } = await service.api.get('/openapi.json').expect(200);
    expect(body).toEqual(apiDocument('task-service'));
  });

  it('reports how many events wait in the message store', async () => {
    // No queue is bound to ScheduleCreatedEvent here, so the event stays.
    const body = { facilityId: 501, name: 'Round', schedule: '0 9 * * *' };
    await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    const text = await eventually(async () => {
      const metrics = await service.app.get(Metrics).registry.metrics();
      expect(metrics).toMatch(/^task_outbox_waiting 1$/m);
      return metrics;
    });
    expect(text).toMatch(/^task_outbox_parked 0$/m);
    expect(text).toMatch(/^task_outbox_oldest_age_seconds 0?\.?\d+/m);
  });

  it('reports how long a trigger has been due, and triggers that cannot be evaluated', async () => {
    const insert = `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, state, next_fire_at)
      VALUES ($1::bigint, $1::bigint::text, 'lag', 'none', '0 9 * * *', 'UTC', $2, now() - $3::interval)`;
    const scrape = (): Promise<string> => service.app.get(Metrics).registry.metrics();
    await service.database.query(insert, [990_001, 'ERROR', '1 day']);
    expect(await scrape()).toMatch(/^task_triggers_failed 1$/m);
    expect(await scrape()).toMatch(/^task_trigger_lag_seconds 0$/m);
    // Stops the only node that fires triggers.
    await service.app.get(SchedulerService).stop();
    await service.database.query(insert, [990_002, 'WAITING', '100 seconds']);
    expect(await scrape()).toMatch(/^task_trigger_lag_seconds 10\d\./m);
  });

  it('stops accepting a token soon after its revocation', async () => {
    await service.api.get('/Schedules').set(CUSTOMER).expect(200);
    const revocationDate = new Date(Date.now() + 1_000).toISOString();
    service.auth.revocations.push({ domain: 'svc-personid', identifier: '1001', revocationDate });
    await eventually(() => service.api.get('/Schedules').set(CUSTOMER).expect(401), { timeoutMs: 3_000 });
  });
});
