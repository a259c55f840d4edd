import { randomUUID } from 'node:crypto';
import { CUSTOMER, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const MEBIBYTE = 1_024 * 1_024;
const FACILITY = 7_001;
/**
 * Nearly the largest template that is accepted, with two-byte characters and characters that JSON escapes.
 */
const TEMPLATE = { text: 'é'.repeat(8_000), lines: '\n'.repeat(4_000) };
const LONG_TEXT = `${'ü'.repeat(3_000)}${'"'.repeat(1_000)}`;

interface Page {
  readonly body: Record<string, unknown>;
  readonly text: string;
}

describe('pages of a list', () => {
  let service: TaskFixture;
  let scheduleId = '';

  beforeAll(async () => {
    service = await startTaskService();
    const created = await service.api
      .post('/Schedules')
      .set(PARTNER)
      .send({ facilityId: FACILITY, name: 'x'.repeat(200), schedule: '0 9 * * 1', template: TEMPLATE })
      .expect(201);
    scheduleId = created.body.scheduleId;
    await service.database.query(
      `INSERT INTO task.schedules (schedule_id, facility_id, name, description, schedule, time_zone, template, created_by_subject,
         created_by_persona, generated_until, request_digest, created_at)
       SELECT gen_random_uuid(), facility_id, name, $2, schedule, time_zone, template, created_by_subject, created_by_persona,
         generated_until, request_digest, created_at + nr * interval '1 second'
       FROM task.schedules, generate_series(1, 249) AS nr WHERE schedule_id = $1`,
      [scheduleId, LONG_TEXT.slice(0, 2_000)],
    );
    await service.database.query(
      `INSERT INTO task.instances (schedule_id, facility_id, name, template, due_at, status, completed_at, completed_by_persona, notes)
       SELECT schedule_id, facility_id, name, template, now() + day * interval '1 day', 'Completed', now(), 1, $2
       FROM task.schedules, generate_series(1, 250) AS day WHERE schedule_id = $1`,
      [scheduleId, LONG_TEXT],
    );
    const dates = Array.from({ length: 3_660 }, (_none, day) =>
      new Date(day * 86_400_000).toISOString().slice(0, 10),
    );
    await service.database.query(
      `INSERT INTO task.calendars (calendar_id, name, excluded_dates)
       SELECT gen_random_uuid(), 'Calendar', $1 FROM generate_series(1, 60)`,
      [dates],
    );
  });
  afterAll(() => service.close());

  async function read(path: string, query: object): Promise<Page[]> {
    const pages: Page[] = [];
    for (let pageKey: unknown; pageKey !== null; pageKey = pages.at(-1)?.body['nextPageKey']) {
      const { body, text } = await service.api
        .get(path)
        .query({ ...query, pageKey })
        .set(PARTNER)
        .expect(200);
      pages.push({ body: body as Record<string, unknown>, text });
    }
    return pages;
  }

  it.each([
    {
      path: '/Instances',
      member: 'instances',
      id: 'taskInstanceId',
      query: { facilityId: FACILITY },
      count: 250,
    },
    {
      path: '/Schedules',
      member: 'schedules',
      id: 'scheduleId',
      query: { facilityId: FACILITY },
      count: 250,
    },
    { path: '/Calendars', member: 'calendars', id: 'calendarId', query: {}, count: 60 },
  ])(
    '$path have at most 1 MiB, and together contain every row once',
    async ({ path, member, id, query, count }) => {
      for (const pageSize of [1_000, 100, 7]) {
        const pages = await read(path, { ...query, pageSize });
        const rows = pages.map(({ body }) => body[member] as Record<string, string>[]);
        for (const [index, { text }] of pages.entries()) {
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MEBIBYTE);
          expect(rows[index]?.length).toBeLessThanOrEqual(pageSize);
          // No page is shorter than necessary.
          if (index < pages.length - 1 && (rows[index]?.length ?? 0) < pageSize)
            expect(Buffer.byteLength(text)).toBeGreaterThan(0.9 * MEBIBYTE);
        }
        const ids = rows.flat().map((row) => row[id]);
        expect(ids).toHaveLength(count);
        expect(new Set(ids).size).toBe(count);
      }
    },
  );

  it('of small rows have the requested size', async () => {
    const facilityId = FACILITY + 1;
    await service.database.query(
      `INSERT INTO task.instances (task_instance_id, schedule_id, facility_id, name, due_at)
       SELECT gen_random_uuid(), $1, $2, 'Round', now() + n * interval '1 minute' FROM generate_series(1, 1001) AS n`,
      [scheduleId, facilityId],
    );
    const pages = await read('/Instances', { facilityId, pageSize: 1_000 });
    expect(pages.map(({ body }) => (body['instances'] as object[]).length)).toEqual([1_000, 1]);
  });

  it('of a schedule filtered by status scan 5,000 instances each, and together return every match once', async () => {
    const facilityId = FACILITY + 2;
    const created = await service.api
      .post('/Schedules')
      .set(PARTNER)
      .send({ facilityId, name: 'Round', schedule: '0 9 1 1 *' })
      .expect(201);
    await service.database.query(
      `INSERT INTO task.instances (schedule_id, facility_id, name, due_at, status, completed_at)
       SELECT $1, $2, 'Round', now() + n * interval '1 minute', CASE WHEN n % 4000 = 1 THEN 'Pending' ELSE 'Completed' END,
         CASE WHEN n % 4000 = 1 THEN NULL ELSE now() END
       FROM generate_series(1, 12000) AS n`,
      [created.body.scheduleId, facilityId],
    );
    const query = { scheduleId: created.body.scheduleId, status: 'Pending' };
    const pages = await read('/Instances', query);
    expect(pages.map(({ body }) => (body['instances'] as object[]).length)).toEqual([2, 1, 0]);
    expect((await read('/Instances', { ...query, pageSize: 1 })).length).toBeLessThanOrEqual(5);
    const all = await read('/Instances', { ...query, status: 'Completed', pageSize: 1_000 });
    expect(all.flatMap(({ body }) => body['instances'])).toHaveLength(11_997);
    // A caller without access to the facility gets the same response as for a schedule that does not exist.
    // In particular, the page key reveals no instant.
    for (const filter of [query, { ...query, scheduleId: randomUUID() }]) {
      const { body } = await service.api.get('/Instances').query(filter).set(CUSTOMER).expect(200);
      expect(body).toEqual({ instances: [], nextPageKey: null });
    }
  });
});
