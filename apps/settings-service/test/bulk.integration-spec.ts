import { PARTNER, CUSTOMER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

describe('many settings at once', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings({ replicas: 2 });
  });
  afterAll(() => service.close());

  const put = (subsystem: string, setting: string, text: string) =>
    service.api
      .put(settingPath(subsystem, setting))
      .set(PARTNER)
      .type('json')
      .send(`{"settingValue":${text}}`)
      .expect(200);
  const send = (
    command: 'read' | 'write',
    body: string | object,
    headers: Record<string, string> = PARTNER,
  ) =>
    service.api
      .post(`/platform/v1/commands/${command}`)
      .set(headers)
      .type('json')
      .send(typeof body === 'string' ? body : JSON.stringify(body));
  const name = (subsystemName: string, settingName: string) => ({ subsystemName, settingName });
  const valueOf = async (subsystem: string, setting: string) =>
    (await service.api.get(`${settingPath(subsystem, setting)}/value`).set(CUSTOMER)).text;
  const historyOf = (subsystem: string) =>
    service.database.query(
      `SELECT setting_name, operation, value_text, request_id FROM settings.setting_history
        WHERE subsystem_key = $1 ORDER BY history_id`,
      [subsystem],
    );

  it.each([
    ['commands/write', { writes: [{ subsystemName: 'Conditional', settingName: 'a', settingValue: 2 }] }],
    ['subsystems/Conditional/commands/restore', { at: '2026-01-01T00:00:00Z' }],
  ])('%s refuses the conditions of a single setting, and writes nothing', async (command, body) => {
    const written = await put('Conditional', 'a', '1');
    const tag = String(written.headers['etag']);
    const conditions = { 'if-match': [tag, '*', '"1"'], 'if-none-match': [tag, '*'] };
    for (const [header, values] of Object.entries(conditions))
      for (const value of values)
        await service.api
          .post(`/platform/v1/${command}`)
          .set({ ...PARTNER, [header]: value })
          .type('json')
          .send(JSON.stringify(body))
          .expect(400);
    expect(await valueOf('Conditional', 'a')).toBe('1');
  });

  describe('read', () => {
    it('returns values byte for byte with their ETags, and names missing settings', async () => {
      const written = await put('Read', 'Big', '12345678901234567890.10');
      await put('Read', 'Order', '{"b":-0,"a":1.0}');
      const settings = [name('read', 'order'), name('Read', 'None'), name('READ', 'big')];
      const answer = await send('read', { settings }, CUSTOMER).expect(200);
      const tag = String(written.headers['etag']);
      expect(answer.text).toMatch(
        /^\{"settings":\[\{"subsystemName":"Read","settingName":"Order","settingValue":\{"b":-0,"a":1.0\},"etag":"\\"\d+\\""\},/,
      );
      expect(answer.text).toContain(`"settingValue":12345678901234567890.10,"etag":${JSON.stringify(tag)}}]`);
      expect(answer.body).toMatchObject({ missing: [name('Read', 'None')], unread: [] });
      expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    });

    it('returns a setting once, however often and in whatever letter case it is named', async () => {
      await put('Twice', 'Large', `"${'x'.repeat(250_000)}"`);
      await put('Twice', 'Small', '1');
      const again = Array.from({ length: 500 }, (_, n) => name('twice', n % 2 === 0 ? 'LARGE' : 'large'));
      const missing = [name('Twice', 'None'), name('twice', 'NONE')];
      const settings = [name('Twice', 'Small'), ...again, ...missing, name('TWICE', 'small')];
      const { body, text } = await send('read', { settings }, CUSTOMER).expect(200);
      expect(body).toMatchObject({
        settings: [{ settingName: 'Small' }, { settingName: 'Large' }],
        unread: [],
      });
      expect(body.settings).toHaveLength(2);
      expect(body.missing).toEqual([name('Twice', 'None')]);
      expect(text.length).toBeLessThan(260_000);
    });

    it('reads 1,000 settings, and omits values that do not fit into the response', async () => {
      const large = `"${'x'.repeat(250_000)}"`;
      for (let n = 0; n < 40; n += 1) await put('Large', `n${String(n)}`, large);
      const settings = Array.from({ length: 1_000 }, (_, n) => name('Large', `n${String(n)}`));
      const { body } = await send('read', { settings }).expect(200);
      expect(body.settings).toHaveLength(33);
      expect(body.unread).toEqual(settings.slice(33, 40));
      expect(body.missing).toEqual(settings.slice(40));
      await send('read', { settings: [...settings, name('a', 'b')] }).expect(400);
    });
  });

  describe('write', () => {
    it('writes and deletes in one transaction, with history entries that share one request id', async () => {
      await put('Mix', 'gone', '"old"');
      const kept = await put('Mix', 'kept', '1');
      const writes =
        `[{"subsystemName":"mix","settingName":"Kept","settingValue":2.50,"ifMatch":${JSON.stringify(kept.headers['etag'])}},` +
        `{"subsystemName":"Mix","settingName":"new","ifNoneMatch":"*","settingValue":{"b":1,"a":-0}},` +
        `{"subsystemName":"Mix","settingName":"gone","delete":true}]`;
      const answer = await send('write', `{"writes":${writes}}`).expect(200);
      expect(answer.text.replace(/\\"\d+\\"/g, 'tag')).toBe(
        '{"settings":[{"subsystemName":"Mix","settingName":"kept","settingValue":2.50,"etag":"tag"},' +
          '{"subsystemName":"Mix","settingName":"new","settingValue":{"b":1,"a":-0},"etag":"tag"},' +
          '{"subsystemName":"Mix","settingName":"gone","settingValue":"old","etag":null}]}',
      );
      expect([await valueOf('Mix', 'kept'), await valueOf('Mix', 'new')]).toEqual(['2.50', '{"b":1,"a":-0}']);
      await service.api.get(settingPath('Mix', 'gone')).set(CUSTOMER).expect(404);
      const entries = (await historyOf('mix')).slice(2);
      expect(
        entries.map(({ setting_name, operation }) => `${String(setting_name)} ${String(operation)}`).sort(),
      ).toEqual(['gone delete', 'kept write', 'new write']);
      expect(new Set(entries.map(({ request_id }) => request_id)).size).toBe(1);
    });

    it.each([
      ['a condition that does not hold', { settingValue: 9, ifMatch: '"1"' }, 412, 'setting-changed'],
      ['a setting to create that exists', { settingValue: 9, ifNoneMatch: '*' }, 412, 'setting-changed'],
      [
        'a setting to delete that does not exist',
        { settingName: 'Absent', delete: true },
        404,
        'setting-not-found',
      ],
    ])('writes nothing for %s, and names it', async (_case, failing, status, type) => {
      await put('All', 'there', '1');
      const writes = [
        { ...name('All', 'first'), settingValue: 1 },
        { ...name('All', 'there'), ...failing },
        { ...name('All', 'other'), settingValue: 1, ifMatch: '*' },
      ];
      const { body } = await send('write', { writes }).expect(status);
      expect(body.type).toBe(`urn:platform:problem:${type}`);
      expect(body.errors).toEqual({ 'writes.1': [expect.stringMatching(/^All \/ (there|Absent): /)] });
      await service.api.get(settingPath('All', 'first')).set(CUSTOMER).expect(404);
      expect(await valueOf('All', 'there')).toBe('1');
    });

    it('returns the first result for the same Idempotency-Key, and refuses it for another request', async () => {
      const headers = { ...PARTNER, 'idempotency-key': 'bulk-1' };
      const writes = [
        { ...name('Once', 'a'), settingValue: 1 },
        { ...name('Once', 'b'), settingValue: 2 },
      ];
      const first = await send('write', { writes }, headers).expect(200);
      await put('Once', 'a', '7');
      const second = await send('write', { writes }, headers).expect(200);
      expect(second.text).toBe(first.text);
      expect(await historyOf('once')).toHaveLength(3);
      await send('write', { writes: writes.slice(0, 1) }, headers).expect(422);
      await send('write', { writes: [...writes].reverse() }, headers).expect(422);
      await send('write', { writes: [...writes, { ...name('Once', 'c'), settingValue: 3 }] }, headers).expect(
        422,
      );
    });

    it('refuses the same writes with another condition under the same Idempotency-Key', async () => {
      const headers = { ...PARTNER, 'idempotency-key': 'bulk-conditions' };
      const [a, b] = [name('Conditions', 'a'), name('Conditions', 'b')].map((each) => ({
        ...each,
        settingValue: 1,
      }));
      const writes = [a, { ...b, ifNoneMatch: '*' }];
      await send('write', { writes }, headers).expect(200);
      await send('write', { writes: [a, b] }, headers).expect(422);
      await send('write', { writes: [a, { ...b, ifNoneMatch: '"1"' }] }, headers).expect(422);
      await send('write', { writes }, headers).expect(200);
      expect(await historyOf('conditions')).toHaveLength(2);
    });

    it('executes concurrent requests with the same Idempotency-Key once', async () => {
      const writes = Array.from({ length: 20 }, (_, n) => ({
        ...name('Same', `n${String(n)}`),
        settingValue: n,
      }));
      const call = (url: string) =>
        fetch(`${url}/platform/v1/commands/write`, {
          method: 'POST',
          headers: { ...PARTNER, 'content-type': 'application/json', 'idempotency-key': 'same' },
          body: JSON.stringify({ writes }),
        });
      const answers = await Promise.all([...service.urls, ...service.urls].map(call));
      const texts = await Promise.all(answers.map((answer) => answer.text()));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect(new Set(texts).size).toBe(1);
      expect(await historyOf('same')).toHaveLength(20);
    });

    it('is never seen partially, and never deadlocks, whatever the order of its writes', async () => {
      const names = ['a', 'b', 'c', 'd', 'e'];
      const write = async (round: number) => {
        const order = round % 2 === 0 ? names : [...names].reverse();
        const body = { writes: order.map((each) => ({ ...name('Sum', each), settingValue: round })) };
        const answer = await fetch(`${String(service.urls[round % 2])}/platform/v1/commands/write`, {
          method: 'POST',
          headers: { ...PARTNER, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
        return answer.status;
      };
      const read = async () => {
        const { body } = await send('read', { settings: names.map((each) => name('Sum', each)) }).expect(200);
        return new Set((body.settings as { settingValue: number }[]).map(({ settingValue }) => settingValue))
          .size;
      };
      const single = Promise.all(names.map((each) => put('Single', each, '0')));
      const statuses = Promise.all(Array.from({ length: 24 }, (_, round) => write(round)));
      const seen = await Promise.all(Array.from({ length: 12 }, read));
      expect(await statuses).toEqual(Array.from({ length: 24 }, () => 200));
      expect(Math.max(...seen)).toBeLessThanOrEqual(1);
      await single;
      expect(await historyOf('sum')).toHaveLength(120);
    });

    const one = { subsystemName: 'S', settingName: 'n' };
    it.each([
      ['no body', '', 'request'],
      ['no object', '[]', 'request'],
      ['no JSON', '{"writes":[}', 'request'],
      ['no writes', '{"writes":[]}', 'writes'],
      ['neither value nor delete', JSON.stringify({ writes: [one] }), 'writes.0'],
      ['both', JSON.stringify({ writes: [{ ...one, settingValue: 1, delete: true }] }), 'writes.0'],
      ['null', JSON.stringify({ writes: [{ ...one, settingValue: null }] }), 'writes.0.settingValue'],
      [
        'a value twice',
        '{"writes":[{"subsystemName":"S","settingName":"n","settingValue":1,"settingValue":2}]}',
        'request',
      ],
      [
        'a misspelt condition',
        JSON.stringify({ writes: [{ ...one, settingValue: 1, ifmatch: '*' }] }),
        'writes.0',
      ],
      [
        'a malformed condition',
        JSON.stringify({ writes: [{ ...one, settingValue: 1, ifMatch: '1' }] }),
        'writes.0.ifMatch',
      ],
      [
        'a bad name',
        JSON.stringify({ writes: [{ ...one, settingName: '..', settingValue: 1 }] }),
        'writes.0.settingName',
      ],
      [
        'too large a value',
        JSON.stringify({ writes: [{ ...one, settingValue: 'x'.repeat(262_143) }] }),
        'writes.0.settingValue',
      ],
      [
        'the same setting twice',
        JSON.stringify({
          writes: ['N', 'n'].map((settingName) => ({ ...one, settingName, settingValue: 1 })),
        }),
        'writes',
      ],
      [
        'too many',
        JSON.stringify({
          writes: Array.from({ length: 101 }, (_, n) => ({
            ...one,
            settingName: `n${String(n)}`,
            settingValue: n,
          })),
        }),
        'writes',
      ],
    ])('refuses %s', async (_case, body, field) => {
      const answer = await send('write', body).expect(400);
      expect(Object.keys(answer.body.errors as object)).toEqual([field]);
    });
  });
});
