import { Writable } from 'node:stream';
import { runAdmin } from '../src/admin/administration';
import { CUSTOMER, OWNER, PARTNER, settingPath, startSettings } from './settings-fixture';
import { bearer, eventually, testSize } from '@platform/testing';
import type { SettingsFixture } from './settings-fixture';

const OTHER = bearer({
  sub: 'userid:9002',
  identityType: 'internal-legacy',
  userId: 9002,
  personId: undefined,
  name: 'Otto',
  personas: 1,
});
const PERSON = bearer({
  sub: 'personid:77',
  identityType: 'svc-personid',
  personId: 77,
  userId: undefined,
  name: 'Paula',
  personas: 1,
});

describe('the past', () => {
  let service: SettingsFixture;
  beforeEach(async () => {
    service = await startSettings();
  });
  afterEach(() => service.close());

  /** Writes a setting. Returns an instant that includes this write and no later one. */
  async function put(subsystem: string, setting: string, text: string, who = PARTNER): Promise<string> {
    const body = `{"settingValue":${text}}`;
    await service.api.put(settingPath(subsystem, setting)).set(who).type('json').send(body).expect(200);
    return settled();
  }

  async function remove(subsystem: string, setting: string): Promise<string> {
    await service.api.delete(settingPath(subsystem, setting)).set(PARTNER).expect(200);
    return settled();
  }

  /** Waits until the millisecond of the last change is over, and returns that instant. */
  async function settled(): Promise<string> {
    const [row] = await service.database.query<{ at: Date; over: boolean }>(
      'SELECT max(occurred_at) AS at FROM settings.setting_history',
    );
    const at = row!.at.toISOString();
    await eventually(async () => {
      const [now] = await service.database.query<{ over: boolean }>(
        `SELECT clock_timestamp() >= $1::timestamptz + interval '2 ms' AS over`,
        [at],
      );
      expect(now?.over).toBe(true);
    });
    return at;
  }

  const get = (path: string, query: Record<string, string> = {}, who = PARTNER) =>
    service.api.get(path).query(query).set(who);
  const changes = async (query: Record<string, string>) => {
    const { body } = await get('/platform/v1/history', query).expect(200);
    return (body.history as { settingName: string; operation: string; settingValue: unknown }[]).map(
      ({ settingName, operation, settingValue }) =>
        `${operation} ${settingName} ${JSON.stringify(settingValue)}`,
    );
  };

  it('a setting is read as it was, byte for byte, with the ETag it had', async () => {
    const path = settingPath('Past', 'One');
    const first = await put('Past', 'One', '1.0');
    const { headers } = await get(path).expect(200);
    const second = await put('past', 'ONE', '{"b":2,"a":-0}');
    const deleted = await remove('Past', 'One');
    await put('Past', 'One', '3');
    const before = new Date(Date.parse(first) - 1).toISOString();
    await get(`${path}/value`, { at: before }).expect(404);
    const then = await get(`${path}/value`, { at: first }).expect(200);
    expect([then.text, then.headers['etag']]).toEqual(['1.0', headers['etag']]);
    expect((await get(`${path}/value`, { at: second }).expect(200)).text).toBe('{"b":2,"a":-0}');
    await get(path, { at: deleted }).expect(404);
    const whole = await get(path, { at: second.replace('Z', '+00:00') }).expect(200);
    expect(whole.text).toBe('{"subsystemName":"Past","settingName":"One","settingValue":{"b":2,"a":-0}}');
    await get(path, { at: first }).set('if-none-match', String(headers['etag'])).expect(304);
    expect(
      (await service.api.get(`${path}/value?at=${first.replace('Z', '+00:00')}`).set(PARTNER)).text,
    ).toBe('1.0');
    for (const at of ['yesterday', '2026-02-30T00:00:00Z', '0000-01-01T00:00:00Z', '2026-01-01T00:00:00', ''])
      await get(path, { at }).expect(400);
  });

  it('a subsystem is listed as it was, page by page', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await put('Page', name, '1');
    await put('Other', 'x', '1');
    const at = await remove('Page', 'b');
    for (const name of ['a', 'b', 'e']) await put('Page', name, '2');
    const list = '/platform/v1/subsystems/page/settings';
    const names = (body: { settings: { settingName: string; settingValue: number }[] }) =>
      body.settings.map(({ settingName, settingValue }) => `${settingName}${String(settingValue)}`);
    const first = await get(list, { at, pageSize: '2' }).expect(200);
    expect(names(first.body)).toEqual(['a1', 'c1']);
    const pageKey = String(first.body.nextPageKey);
    const second = await get(list, { at, pageSize: '2', pageKey }).expect(200);
    expect([names(second.body), second.body.nextPageKey]).toEqual([['d1'], null]);
    await get(list, { pageSize: '2', pageKey }).expect(400);
    expect(names((await get(list).expect(200)).body)).toEqual(['a2', 'b2', 'c1', 'd1', 'e2']);
  });

  it('requires the persona of the history: deleted and replaced values are hidden from others', async () => {
    const path = settingPath('Past', 'Secret');
    const at = await put('Past', 'Secret', '"old-password"');
    await put('Past', 'Secret', '"new-password"');
    for (const caller of [CUSTOMER, OWNER])
      for (const past of [path, `${path}/value`, '/platform/v1/subsystems/past/settings']) {
        const refused = await get(past, { at }, caller).expect(403);
        expect(refused.headers['content-type']).toMatch(/^application\/problem\+json/);
        expect(refused.text).not.toContain('password');
        await get(past, {}, caller).expect(200);
        await get(past, { at }).expect(200);
      }
  });

  it('lists have ETags', async () => {
    await put('Tag', 'a', '1');
    for (const list of [
      '/platform/v1/settings',
      '/platform/v1/subsystems/tag/settings',
      '/platform/v1/history',
    ]) {
      const { headers } = await get(list).expect(200);
      expect(headers).toMatchObject({
        'cache-control': 'private, no-cache',
        etag: expect.stringMatching(/^"\S{43}"$/),
      });
      const again = await get(list).set('if-none-match', String(headers['etag'])).expect(304);
      expect(again.text).toBe('');
      await get(list).set('if-none-match', 'no tag').expect(400);
    }
    const { headers } = await get('/platform/v1/settings').expect(200);
    await put('Tag', 'a', '2');
    await get('/platform/v1/settings').set('if-none-match', String(headers['etag'])).expect(200);
  });

  it('the history of all settings is filtered by subsystem, person and time', async () => {
    const start = await put('Ä', 'one', '1');
    const middle = await put('B', 'two', '2', OTHER);
    await put('ä', 'three', '3', PERSON);
    await remove('B', 'two');
    const all = ['delete two 2', 'write three 3', 'write two 2', 'write one 1'];
    expect(await changes({})).toEqual(all);
    expect(await changes({ subsystem: 'ä' })).toEqual([all[1], all[3]]);
    expect(await changes({ userId: '9002' })).toEqual([all[2]]);
    expect(await changes({ personId: '77' })).toEqual([all[1]]);
    expect(await changes({ to: middle })).toEqual(all.slice(2));
    expect(await changes({ from: middle, subsystem: 'b' })).toEqual([all[0], all[2]]);
    expect(await changes({ from: start, to: start })).toEqual([all[3]]);
    const { body } = await get('/platform/v1/history', { pageSize: '3' }).expect(200);
    expect(body.history[0]).toMatchObject({ subsystemName: 'B', settingName: 'two', userId: 9001 });
    const pageKey = String(body.nextPageKey);
    expect(await changes({ pageSize: '3', pageKey })).toEqual([all[3]]);
    await get('/platform/v1/history', { pageKey, subsystem: 'b' }).expect(400);
    for (const query of [{ sybsystem: 'b' }, { personId: 'x' }, { from: 'x' }, { subsystem: '..' }])
      await get('/platform/v1/history', query as unknown as Record<string, string>).expect(400);
  });

  it('a subsystem is restored to an instant, after a dry run that changes nothing', async () => {
    for (const name of ['kept', 'changed', 'gone']) await put('Back', name, '1.50');
    const at = await put('Else', 'x', '1');
    await put('Back', 'changed', '2');
    await put('Back', 'new', '2');
    await put('Else', 'x', '2');
    await remove('Back', 'gone');
    const restore = (body: object) =>
      service.api.post('/platform/v1/subsystems/back/commands/restore').set(PARTNER).send(body);
    const expected = [
      { settingName: 'changed', operation: 'write' },
      { settingName: 'gone', operation: 'write' },
      { settingName: 'new', operation: 'delete' },
    ];
    const before = await changes({});
    const dry = await restore({ at, dryRun: true }).expect(200);
    expect(dry.body).toEqual({ at, dryRun: true, changes: expected });
    expect(await changes({})).toEqual(before);
    const done = await restore({ at }).expect(200);
    expect(done.body).toEqual({ at, dryRun: false, changes: expected });
    const list = await get('/platform/v1/subsystems/Back/settings').expect(200);
    expect(list.text).toContain('"settingName":"gone","settingValue":1.50}');
    expect((list.body.settings as { settingName: string }[]).map(({ settingName }) => settingName)).toEqual([
      'changed',
      'gone',
      'kept',
    ]);
    expect((await get(`${settingPath('Else', 'x')}/value`).expect(200)).text).toBe('2');
    const { body } = await get('/platform/v1/history', { pageSize: '3' }).expect(200);
    const entries = body.history as { requestId: string; userId: number }[];
    expect(new Set(entries.map(({ requestId, userId }) => `${requestId} ${String(userId)}`)).size).toBe(1);
    expect((await restore({ at }).expect(200)).body.changes).toEqual([]);
    for (const wrong of [{}, { at: 'x' }, { at, dryrun: true }]) await restore(wrong).expect(400);
  });

  it('a restoration also restores names in their past spelling', async () => {
    await put('Straße', 'Straße', '1');
    const at = await put('Straße', 'kept', '1');
    await remove('Straße', 'Straße');
    await put('STRASSE', 'STRASSE', '1');
    await remove('Straße', 'kept');
    await put('STRASSE', 'KEPT', '2');
    const list = `/platform/v1/subsystems/strasse/settings`;
    const past = await get(list, { at }).expect(200);
    const restored = await service.api
      .post('/platform/v1/subsystems/strasse/commands/restore')
      .set(PARTNER)
      .send({ at })
      .expect(200);
    expect(restored.body.changes).toEqual([
      { settingName: 'kept', operation: 'write' },
      { settingName: 'Straße', operation: 'write' },
    ]);
    expect((await get(list).expect(200)).text).toBe(past.text);
    const again = { at: await settled() };
    expect((await get(list, again).expect(200)).text).toBe(past.text);
    const { body } = await get('/platform/v1/history', { subsystem: 'strasse', pageSize: '2' }).expect(200);
    const names = (body.history as { subsystemName: string; settingName: string }[]).map(
      ({ subsystemName, settingName }) => `${subsystemName}/${settingName}`,
    );
    expect(names.sort()).toEqual(['Straße/Straße', 'Straße/kept']);
  });

  it('a restoration of several settings accepts an idempotency key', async () => {
    const at = await put('Key', 'a', '1');
    for (const name of ['a', 'b', 'c']) await put('Key', name, '2');
    for (const changed of [3, 0]) {
      const { body } = await service.api
        .post('/platform/v1/subsystems/key/commands/restore')
        .set({ ...PARTNER, 'idempotency-key': 'k' })
        .send({ at })
        .expect(200);
      expect(body.changes).toHaveLength(changed);
    }
  });

  it('a history with several filters is found among very many entries, in pages that may be short', async () => {
    const insert = (columns: string) =>
      service.database.query(`
      INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id, user_id, occurred_at)
      ${columns}`);
    await insert(`SELECT 'busy', 'found', 'busy', 'found', 'write', '1', 1, 1, 'r', 2, '2026-01-01Z'`);
    for (const [subsystem, user] of [
      ['busy', 1],
      ['other', 2],
    ] as const)
      await insert(`SELECT '${subsystem}', 'n' || n, '${subsystem}', 'n' || n, 'write', '1', 1, 1, 'r', ${String(user)}, timestamptz '2026-01-02Z' + n * interval '1 s'
        FROM generate_series(1, 12000) AS n`);
    const found: string[] = [];
    let [pages, pageKey]: [number, string | null] = [0, ''];
    while (pageKey !== null) {
      const query = { subsystem: 'busy', userId: '2', ...(pageKey === '' ? {} : { pageKey }) };
      const { body } = await get('/platform/v1/history', query).expect(200);
      found.push(...(body.history as { settingName: string }[]).map(({ settingName }) => settingName));
      pageKey = body.nextPageKey as string | null;
      pages += 1;
    }
    expect([found, pages]).toEqual([['found'], 2]);
  });

  it('the past settings of a subsystem are found among very many deleted names', async () => {
    for (const [operation, day] of [
      ['write', '2026-01-01Z'],
      ['delete', '2026-01-02Z'],
    ] as const)
      await service.database.query(`
        INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id, occurred_at)
        SELECT 'gone', 'n' || lpad(n::text, 5, '0'), 'gone', 'n' || n, '${operation}', '1', 1, 1, 'r', '${day}' FROM generate_series(1, 6000) AS n
        WHERE '${operation}' = 'write' OR n NOT IN (3, 5999)`);
    const found: string[] = [];
    let [pages, pageKey]: [number, string | null] = [0, ''];
    while (pageKey !== null) {
      const query = { at: '2026-01-03T00:00:00Z', ...(pageKey === '' ? {} : { pageKey }) };
      const { body } = await get('/platform/v1/subsystems/gone/settings', query).expect(200);
      found.push(...(body.settings as { settingName: string }[]).map(({ settingName }) => settingName));
      pageKey = body.nextPageKey as string | null;
      pages += 1;
    }
    expect([found, pages]).toEqual([['n3', 'n5999'], 2]);
  });

  describe('of many settings', () => {
    /** More settings than one request may restore. */
    const SETTINGS = testSize('TEST_RESTORED_SETTINGS', { quick: 20_000, full: 100_000 });
    const half = SETTINGS / 2;
    const text = (count: number) => count.toLocaleString('en');
    const keyOf = (index: number) => `n${String(index).padStart(6, '0')}`;
    const AT = '2026-01-15T00:00:00.000Z';
    const restore = (body: object) =>
      service.api
        .post('/platform/v1/subsystems/MANY/commands/restore')
        .set(PARTNER)
        .send({ at: AT, ...body });
    const values = () =>
      service.database.query(
        `SELECT value_text AS value, count(*)::int FROM settings.setting GROUP BY 1 ORDER BY 1`,
      );
    const entries = () =>
      service.database.query(
        `SELECT operation, count(*)::int, count(DISTINCT request_id)::int AS requests FROM settings.setting_history
          WHERE occurred_at > '2026-03-01Z' GROUP BY 1 ORDER BY 1`,
      );

    /** Creates settings, and changes the first `changed` of them after the instant. */
    async function fill(changed: number): Promise<void> {
      const columns = `'many', 'n' || lpad(n::text, 6, '0'), 'Many', 'N' || lpad(n::text, 6, '0')`;
      const write = (value: string, day: string, size: number) => `
        INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text,
          revision, persona, request_id, occurred_at)
        SELECT ${columns}, 'write', '${value}', n, 1, 'r', '${day}' FROM generate_series(1, ${String(size)}) AS n`;
      await service.database.query(write('1', '2026-01-01Z', SETTINGS));
      await service.database.query(write('2', '2026-02-01Z', changed));
      await service.database.query(`INSERT INTO settings.setting
        SELECT ${columns}, CASE WHEN n > ${String(changed)} THEN '1' ELSE '2' END FROM generate_series(1, ${String(SETTINGS)}) AS n`);
      await service.database.query('ANALYZE settings.setting, settings.setting_history');
    }

    it('up to 10,000 changed settings are restored, all or nothing', async () => {
      await fill(10_000);
      const dry = await restore({ dryRun: true }).expect(200);
      const done = await restore({}).expect(200);
      expect(done.body.changes).toHaveLength(10_000);
      expect(done.body.changes).toEqual(dry.body.changes);
      expect(await values()).toEqual([{ value: '1', count: SETTINGS }]);
      expect(await entries()).toEqual([{ operation: 'write', count: 10_000, requests: 1 }]);
    }, 120_000);

    it('more are refused, and restored by the operator’s command line, which has no limit', async () => {
      await fill(SETTINGS);
      for (const body of [{ dryRun: true }, {}]) {
        const refused = await restore(body).expect(422);
        expect(refused.body).toMatchObject({
          type: 'urn:platform:problem:restore-too-large',
          detail: expect.stringContaining('settings:admin restore'),
        });
      }
      expect([await values(), await entries()]).toEqual([[{ value: '2', count: SETTINGS }], []]);
      const [output, complaints]: string[][] = [[], []];
      const admin = (...args: string[]) =>
        runAdmin(['restore', 'Many', AT, ...args], {
          env: service.environment,
          output: new Writable({
            write: (chunk: Buffer, _encoding, done) => {
              output!.push(chunk.toString());
              done();
            },
          }),
          complain: (text) => complaints!.push(text),
        });
      expect(await admin('--dry-run', '--quiet')).toBe(0);
      expect(await values()).toEqual([{ value: '2', count: SETTINGS }]);
      // Simulates an interrupted run.
      await service.database.query(
        `UPDATE settings.setting SET value_text = '1' WHERE setting_key < '${keyOf(half)}'`,
      );
      expect(await admin('--yes')).toBe(0);
      expect(await values()).toEqual([{ value: '1', count: SETTINGS }]);
      expect(await entries()).toEqual([{ operation: 'write', count: half + 1, requests: 1 }]);
      expect([output![0], output![1], output!.at(-1)]).toEqual([
        `${text(SETTINGS)} to write, 0 to delete, 0 unchanged\n`,
        `~ "Many" "${keyOf(half).toUpperCase()}"\n`,
        `${text(half + 1)} written, 0 deleted, ${text(half - 1)} unchanged\n`,
      ]);
      expect(complaints!.at(-1)).toBe(`${text(SETTINGS)} settings\n`);
    }, 120_000);
  });
});
