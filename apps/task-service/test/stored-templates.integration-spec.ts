import { eventually } from '@platform/testing';
import { DataSource } from 'typeorm';
import { InstanceAlignmentJob } from '../src/recurring-generation/instance-alignment.job';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { ReleasedRetentionJob, TemplateRetentionJob } from '../src/retention.job';
import { CUSTOMER, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const LONG = { text: 'x'.repeat(16_000) };
const OTHER = { text: 'y'.repeat(16_000) };
const SHORT = { text: 'z' };
let lastFacility = 60_000;

describe('templates of instances', () => {
  let service: TaskFixture;
  const query = <Row extends object>(sql: string, ...values: unknown[]) =>
    service.database.query<Row>(sql, values);
  const generate = (facilityId: number) =>
    service.app
      .get(DataSource)
      .transaction((manager) => service.app.get(InstanceGenerationService).generate(manager, { facilityId }));
  const create = async (template: object | null, facilityId = (lastFacility += 1), token = PARTNER) => {
    const body = { facilityId, name: 'Round', schedule: '0 9 * * *', template };
    const { body: created } = await service.api.post('/Schedules').set(token).send(body).expect(201);
    await generate(facilityId);
    return { id: created.scheduleId as string, facilityId };
  };
  const patch = (id: string, body: object, token = PARTNER) =>
    service.api.patch(`/Schedules/${id}`).set(token).send(body).expect(200);
  /** Returns the distinct templates of instances with this status, as the API shows them. */
  const templates = async (scheduleId: string, status: string): Promise<unknown[]> => {
    const { body } = await service.api
      .get('/Instances')
      .query({ scheduleId, status, pageSize: 1_000 })
      .set(PARTNER)
      .expect(200);
    const found = (body.instances as { template: unknown }[]).map(({ template }) => JSON.stringify(template));
    return [...new Set(found)].sort().map((text) => JSON.parse(text) as unknown);
  };
  const sizeOf = async (...tables: string[]): Promise<number> => {
    let bytes = 0;
    for (const table of tables) {
      const rows = await query<{ bytes: number }>(
        `SELECT pg_total_relation_size('task.${table}')::float8 AS bytes`,
      );
      bytes += rows[0]?.bytes ?? 0;
    }
    return bytes;
  };

  beforeAll(async () => {
    service = await startTaskService({
      env: { RELEASED_PER_FACILITY: '3000', RELEASED_RETENTION_DAYS: '5' },
    });
  });
  afterAll(() => service.close());

  it('follow changes of the schedule while pending, and are kept after completion or cancellation', async () => {
    for (const [first, second] of [
      [LONG, OTHER],
      [LONG, SHORT],
      [SHORT, LONG],
      [LONG, null],
      [null, LONG],
    ]) {
      const { id } = await create(first ?? null);
      const { body } = await service.api
        .get('/Instances')
        .query({ scheduleId: id, pageSize: 3 })
        .set(PARTNER);
      const [completed, cancelled] = body.instances as { taskInstanceId: string }[];
      for (const [instance, name] of [
        [completed, 'complete'],
        [cancelled, 'cancel'],
      ] as const) {
        const answer = await service.api
          .post(`/Instances/${String(instance?.taskInstanceId)}/commands/${name}`)
          .set(PARTNER)
          .expect(200);
        expect(answer.body.template).toEqual(first);
      }
      expect((await patch(id, { template: second })).body.template).toEqual(second);
      expect(await templates(id, 'Pending')).toEqual([second]);
      expect(await templates(id, 'Completed')).toEqual([first]);
      expect(await templates(id, 'Cancelled')).toEqual([first]);
      await service.api.post(`/Schedules/${id}/commands/pause`).set(PARTNER).expect(200);
      expect(await templates(id, 'Pending')).toEqual([]);
      const one = await service.api.get(`/Instances/${String(completed?.taskInstanceId)}`).set(PARTNER);
      expect(one.body.template).toEqual(first);
    }
  });

  it('are stored once, however often the schedule changes', async () => {
    const { id } = await create(LONG, 501, CUSTOMER);
    await patch(id, { schedule: '*/5 * * * *' }, CUSTOMER);
    const before = await sizeOf('instances', 'released_instances', 'templates');
    for (let change = 0; change < 6; change += 1)
      await patch(id, { schedule: change % 2 === 0 ? '2-59/5 * * * *' : '*/5 * * * *' }, CUSTOMER);
    await eventually(async () => {
      await service.app.get(InstanceAlignmentJob).run();
      const { body } = await service.api.get(`/Schedules/${id}`).set(PARTNER).expect(200);
      expect(body.releasing).toBe(0);
    });
    await eventually(async () => {
      const [row] = await query<{ count: number }>(
        `SELECT count(*)::int AS count FROM task.released_instances WHERE schedule_id = $1`,
        id,
      );
      expect(row?.count).toBeGreaterThan(15_000);
    });
    const grown = (await sizeOf('instances', 'released_instances', 'templates')) - before;
    // With a copy of 16 KiB per instance, the 8,640 instances of a change would take 150 MB after
    // compression.
    expect(grown / 6).toBeLessThan(8_000_000);
    expect(await templates(id, 'Pending')).toEqual([LONG]);
    // Retention bounds the number of released instances.
    await service.app.get(ReleasedRetentionJob).run();
    const [left] = await query<{ count: number }>(
      `SELECT count(*)::int AS count FROM task.released_instances WHERE facility_id = 501`,
    );
    expect(left?.count).toBe(3_000);
  }, 60_000);

  it('are purged with old released instances', async () => {
    const { id } = await create(null);
    await service.api.post(`/Schedules/${id}/commands/pause`).set(PARTNER).expect(200);
    await query(
      `UPDATE task.released_instances SET cancelled_at = now() - interval '6 days'
       WHERE schedule_id = $1 AND extract(day FROM due_at)::int % 2 = 0`,
      id,
    );
    const [old] = await query<{ count: number }>(
      `SELECT count(*)::int AS count FROM task.released_instances WHERE cancelled_at < now() - interval '5 days'`,
    );
    const job = service.app.get(ReleasedRetentionJob);
    const removed = await Promise.all([job.run(), job.run()]);
    expect(removed.reduce((sum, each) => sum + each, 0)).toBe(old?.count);
    expect(await job.run()).toBe(0);
  });

  it('are purged a day after their last use, and kept while in use', async () => {
    const unused = { text: 'u'.repeat(1_000) };
    const [kept, changed] = [await create(OTHER), await create(unused)];
    await patch(changed.id, { template: null });
    await query(`UPDATE task.templates SET used_at = used_at - interval '25 hours'`);
    const texts = async () =>
      (await query<{ template: string }>('SELECT template FROM task.templates')).map(
        ({ template }) => template,
      );
    expect(await texts()).toContain(JSON.stringify(unused));
    await service.app.get(TemplateRetentionJob).run();
    expect(await texts()).not.toContain(JSON.stringify(unused));
    expect(await texts()).toContain(JSON.stringify(OTHER));
    expect(await templates(kept.id, 'Pending')).toEqual([OTHER]);
  });

  describe('with release 1.0.0, which stores a copy in each instance', () => {
    const INSERT = `
      INSERT INTO task.instances (schedule_id, facility_id, name, template, due_at)
      SELECT schedule_id, facility_id, name, template, now() + interval '40 days' FROM task.schedules WHERE schedule_id = $1
      ON CONFLICT (schedule_id, due_at) DO NOTHING`;
    const COPY = `
      UPDATE ONLY task.instances AS instance SET name = schedule.name, template = schedule.template
      FROM task.schedules AS schedule
      WHERE schedule.schedule_id = $1 AND instance.schedule_id = $1 AND instance.status = 'Pending' AND instance.due_at > now()`;

    it.each([
      [LONG, SHORT],
      [SHORT, LONG],
      [LONG, OTHER],
      [LONG, null],
      [null, LONG],
    ])('are read from its rows, and follow its changes', async (first, second) => {
      const { id } = await create(first);
      await query(INSERT, id);
      expect(await templates(id, 'Pending')).toEqual([first]);
      const text = second === null ? null : JSON.stringify(second);
      await query(
        'UPDATE task.schedules SET template = $2, revision = revision + 1 WHERE schedule_id = $1',
        id,
        text,
      );
      await query(COPY, id);
      expect(await templates(id, 'Pending')).toEqual([second]);
    });

    it('are stored in the rows if short, where it reads them', async () => {
      const { id } = await create(SHORT);
      expect(await query('SELECT DISTINCT template FROM task.instances WHERE schedule_id = $1', id)).toEqual([
        { template: JSON.stringify(SHORT) },
      ]);
    });

    it('are stored separately when schedules that it created are generated', async () => {
      const { id, facilityId } = await create(LONG);
      await query(
        'UPDATE task.schedules SET template_id = NULL, generated_until = now() WHERE schedule_id = $1',
        id,
      );
      await query('DELETE FROM task.instances WHERE schedule_id = $1', id);
      await generate(facilityId);
      const rows = await query('SELECT DISTINCT template FROM task.instances WHERE schedule_id = $1', id);
      expect(rows).toEqual([{ template: null }]);
      expect(await templates(id, 'Pending')).toEqual([LONG]);
    });
  });
});
