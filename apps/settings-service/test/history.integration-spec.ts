import { Client } from 'pg';
import { MIGRATIONS, SCHEMA, appRoleGrants } from '../src/database-layout';
import { runMigrations } from '@platform/database';
import { bearer } from '@platform/testing';
import { PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

describe('history', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings();
  });
  afterAll(() => service.close());

  const put = (path: string, value: unknown) =>
    service.api.put(path).set(PARTNER).send({ settingValue: value }).expect(200);
  const history = async (path: string, query = '') =>
    (await service.api.get(`${path}/history${query}`).set(PARTNER).expect(200)).body;

  it('lists who wrote what, newest first, also after the setting is deleted', async () => {
    const path = settingPath('History', 'Told');
    await put(path, 'first');
    const person = bearer({ sub: 'personid:7', personId: 7, name: 'Jörg \u0000 Müller', personas: 19 });
    const traceparent = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`;
    await service.api
      .put(path)
      .set(person)
      .set({ traceparent })
      .send({ settingValue: { a: 1 } })
      .expect(200);
    await service.api.delete(path).set(PARTNER).expect(200);
    await service.api.delete(path).set(PARTNER).expect(404);
    const { history: entries, nextPageKey } = await history(settingPath('HISTORY', 'told'));
    const ivy = { personId: null, userId: 9001, personName: 'Ivy Internal', persona: 1 };
    const jorg = { personId: 7, userId: null, personName: 'Jörg \ufffd Müller', persona: 19 };
    const entry = { id: expect.any(Number), occurredAt: expect.stringMatching(/^\d{4}-.*Z$/) };
    const requestId = expect.stringMatching(/^[0-9a-f]{32}$/);
    expect(entries).toEqual([
      { ...entry, ...ivy, operation: 'delete', settingValue: { a: 1 }, requestId },
      { ...entry, ...jorg, operation: 'write', settingValue: { a: 1 }, requestId: 'a1'.repeat(16) },
      { ...entry, ...ivy, operation: 'write', settingValue: 'first', requestId },
    ]);
    expect(nextPageKey).toBeNull();
    expect(entries.map((each: { id: number }) => each.id)).toEqual(
      [...entries.map((each: { id: number }) => each.id)].sort((a, b) => b - a),
    );
  });

  it('is empty for a setting that never existed', async () => {
    expect(await history(settingPath('History', 'Never'))).toEqual({ history: [], nextPageKey: null });
  });

  it('is a 304 until it changes', async () => {
    const path = settingPath('History', 'Unchanged');
    await put(path, 1);
    const { headers } = await service.api.get(`${path}/history`).set(PARTNER).expect(200);
    const again = () =>
      service.api.get(`${path}/history`).set(PARTNER).set('if-none-match', String(headers['etag']));
    await again().expect(304);
    await put(path, 2);
    await again().expect(200);
  });

  it('is paged', async () => {
    const path = settingPath('History', 'Paged');
    for (let value = 1; value <= 5; value += 1) await put(path, value);
    const values: number[] = [];
    let query = '?pageSize=2';
    for (let pages = 0; pages < 3; pages += 1) {
      const page = await history(path, query);
      values.push(...page.history.map((entry: { settingValue: number }) => entry.settingValue));
      query = `?pageSize=2&pageKey=${String(page.nextPageKey)}`;
    }
    expect(values).toEqual([5, 4, 3, 2, 1]);
    expect(query).toMatch(/null$/);
    const { nextPageKey } = await history(path, '?pageSize=1');
    await service.api
      .get(`${settingPath('History', 'Told')}/history`)
      .query({ pageKey: nextPageKey })
      .set(PARTNER)
      .expect(400);
  });

  it('restores a value byte for byte, also of a deleted setting, and records that as a write', async () => {
    const path = settingPath('History', 'Restored');
    await service.api.put(path).set(PARTNER).type('json').send('{"settingValue":1.0}').expect(200);
    await service.api.delete(path).set(PARTNER).expect(200);
    const [deleted, written] = (await history(path)).history;
    const answer = await service.api
      .post(`${settingPath('history', 'RESTORED')}/history/${String(written.id)}/restore`)
      .set(PARTNER)
      .expect(200);
    expect(answer.text).toBe('{"subsystemName":"History","settingName":"Restored","settingValue":1.0}');
    expect(answer.headers['etag']).toMatch(/^"\d+"$/);
    await put(path, 2);
    await service.api
      .post(`${path}/history/${String(deleted.id)}/restore`)
      .set(PARTNER)
      .set('if-match', answer.headers['etag'] ?? '')
      .expect(412);
    await service.api
      .post(`${path}/history/${String(deleted.id)}/restore`)
      .set(PARTNER)
      .expect(200);
    const operations = (await history(path)).history.map((entry: { operation: string }) => entry.operation);
    expect(operations).toEqual(['write', 'write', 'write', 'delete', 'write']);
  });

  it('refuses to restore an entry of another setting, or one that does not exist', async () => {
    const path = settingPath('History', 'Other');
    await put(path, 1);
    const [entry] = (await history(path)).history;
    const answer = await service.api
      .post(`${settingPath('History', 'X')}/history/${String(entry.id)}/restore`)
      .set(PARTNER)
      .expect(404);
    expect(answer.body.type).toBe('urn:platform:problem:history-entry-not-found');
    for (const id of ['0', '-1', 'x', '1.5', '9'.repeat(30)])
      await service.api.post(`${path}/history/${id}/restore`).set(PARTNER).expect(400);
    await service.api
      .post(`${path}/history/${'9'.repeat(18)}/restore`)
      .set(PARTNER)
      .expect(404);
  });

  it('cannot be changed by the role of the service', async () => {
    const app = await service.database.createRole();
    const settings = {
      url: service.database.ownerUrl,
      schema: SCHEMA,
      applicationName: 'test',
      migrations: MIGRATIONS,
    };
    await runMigrations(settings, { appRole: app.role, appRoleGrants });
    const client = new Client({ connectionString: app.url });
    await client.connect();
    try {
      for (const statement of [
        "UPDATE settings.setting_history SET person_name = 'nobody'",
        'DELETE FROM settings.setting_history',
        'TRUNCATE settings.setting_history',
        'TRUNCATE settings.setting',
        'ALTER TABLE settings.setting_history ADD COLUMN a int',
        'DROP TABLE settings.setting_history',
        'CREATE TABLE settings.another (a int)',
      ]) {
        await expect(client.query(statement)).rejects.toMatchObject({ code: '42501' });
      }
      await client.query('SELECT count(*) FROM settings.setting_history');
    } finally {
      await client.end();
    }
  });
});
