import { BROKEN, NOT_FOUND, ok, problem, scripted, setting } from '../test/scripted-service';
import { SettingsClient } from './settings-client';

describe('SettingsClient', () => {
  describe('reads', () => {
    it('reads a setting with its ETag', async () => {
      const { client, requests } = scripted([setting('{"a":1}', '"7"')]);
      expect(await client.getSetting('Sub/system', 'nä me')).toEqual({
        subsystemName: 'S',
        settingName: 'n',
        settingValue: { a: 1 },
        etag: '"7"',
      });
      expect(requests[0]?.url).toBe(
        'http://settings.test/platform/v1/subsystems/Sub%2Fsystem/settings/n%C3%A4%20me',
      );
      expect(requests[0]?.headers.get('authorization')).toBe('Bearer token');
    });

    it('reads a value, and its text without rounding', async () => {
      const { client, requests } = scripted([ok('12345678901234567890.0')]);
      expect(await client.getValue('S', 'n')).toBe(12345678901234567000);
      expect(await client.getValueText('S', 'n')).toBe('12345678901234567890.0');
      expect(requests[0]?.url).toMatch(/\/settings\/n\/value$/);
    });

    it("returns null only for the setting's own 404, without a retry", async () => {
      const missing = scripted([NOT_FOUND]);
      expect(await missing.client.getSettingOrNull('S', 'n')).toBeNull();
      expect(await missing.client.getValueOrNull('S', 'n')).toBeNull();
      await expect(missing.client.getValue('S', 'n')).rejects.toMatchObject({
        name: 'SettingNotFoundError',
        status: 404,
      });
      expect(missing.requests).toHaveLength(3);
      const elsewhere = scripted([problem(404)]);
      await expect(elsewhere.client.getValueOrNull('S', 'n')).rejects.toMatchObject({
        name: 'SettingsHttpError',
        status: 404,
      });
    });

    it.each([
      ['HTML', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
      ['truncated JSON', ok('{"a":')],
    ])('refuses %s as a response', async (_kind, step) => {
      await expect(scripted([step]).client.getValue('S', 'n')).rejects.toMatchObject({
        name: 'SettingsProtocolError',
      });
    });

    it('refuses an object that is not a setting', async () => {
      await expect(scripted([ok('{"a":1}')]).client.getSetting('S', 'n')).rejects.toMatchObject({
        name: 'SettingsProtocolError',
      });
    });

    it('does not follow redirects', async () => {
      const { client, requests } = scripted([
        () => new Response(null, { status: 302, headers: { location: '/login' } }),
      ]);
      await expect(client.getValue('S', 'n')).rejects.toMatchObject({
        name: 'SettingsHttpError',
        status: 302,
      });
      expect(requests[0]?.redirect).toBe('manual');
    });

    it('reads lists page by page, only as far as needed', async () => {
      const page = (names: string[], next: string | null) =>
        ok(
          JSON.stringify({
            settings: names.map((settingName) => ({ subsystemName: 'S', settingName, settingValue: 1 })),
            nextPageKey: next,
          }),
        );
      const { client, requests } = scripted([page(['a', 'b'], 'k+1'), page(['c'], null)]);
      const names: string[] = [];
      for await (const each of client.listSubsystemSettings('S', { pageSize: 2 }))
        names.push(each.settingName);
      expect(names).toEqual(['a', 'b', 'c']);
      expect(requests.map(({ url }) => new URL(url).search)).toEqual([
        '?pageSize=2',
        '?pageSize=2&pageKey=k%2B1',
      ]);
      const lazy = scripted([page(['a', 'b'], 'k')]);
      for await (const each of lazy.client.listSettings()) if (each.settingName === 'b') break;
      expect(lazy.requests.map(({ url }) => url)).toEqual(['http://settings.test/platform/v1/settings']);
    });

    it('fails on a list whose next page is the same page again', async () => {
      const { client } = scripted([ok('{"settings":[],"nextPageKey":"same"}')]);
      const all = async () => {
        for await (const each of client.listSettings()) void each;
      };
      await expect(all()).rejects.toMatchObject({ name: 'SettingsProtocolError' });
    });
  });

  describe('writes', () => {
    it('retries a PUT under one idempotency key, and uses a new key for the next PUT', async () => {
      const { client, requests } = scripted([BROKEN, problem(503), setting('1'), setting('2')]);
      await client.putSetting('S', 'n', 1);
      await client.putSetting('S', 'n', 2);
      const keys = requests.map(({ headers }) => headers.get('idempotency-key'));
      expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
      expect(keys.slice(0, 3)).toEqual([keys[0], keys[0], keys[0]]);
      expect(keys[3]).not.toBe(keys[0]);
    });

    it('sends the value, its conditions and the given key', async () => {
      const { client, requests } = scripted([setting('{"a":[1]}', '"9"')]);
      const written = await client.putSetting(
        'S',
        'n',
        { a: [1] },
        { ifMatch: '"8"', idempotencyKey: 'mine' },
      );
      expect(written.etag).toBe('"9"');
      const { method, headers } = requests[0]!;
      expect([method, headers.get('if-match'), headers.get('idempotency-key')]).toEqual([
        'PUT',
        '"8"',
        'mine',
      ]);
      expect(await requests[0]!.text()).toBe('{"settingValue":{"a":[1]}}');
    });

    it('sends a value given as text verbatim', async () => {
      const { client, requests } = scripted([setting('1')]);
      await client.putValueText('S', 'n', ' 1.00 ');
      expect(await requests[0]!.text()).toBe('{"settingValue": 1.00 }');
      for (const text of ['', '1}', '1,"a":2', 'null', ' null '])
        await expect(client.putValueText('S', 'n', text)).rejects.toThrow(TypeError);
      expect(requests).toHaveLength(1);
    });

    it('refuses null and values that JSON cannot hold, without a request', async () => {
      const { client, requests } = scripted([setting('1')]);
      for (const value of [null, undefined, NaN, () => 1]) {
        await expect(client.putSetting('S', 'n', value as never)).rejects.toThrow(TypeError);
      }
      expect(requests).toHaveLength(0);
    });

    it('reports a failed condition', async () => {
      const { client } = scripted([problem(412)]);
      await expect(client.putSetting('S', 'n', 1, { ifMatch: '"1"' })).rejects.toMatchObject({
        name: 'SettingChangedError',
      });
    });

    it('deletes a setting and returns it', async () => {
      const { client, requests } = scripted([setting('1'), NOT_FOUND]);
      expect(await client.deleteSetting('S', 'n')).toEqual({
        subsystemName: 'S',
        settingName: 'n',
        settingValue: 1,
      });
      expect(requests[0]?.method).toBe('DELETE');
      await expect(client.deleteSetting('S', 'n')).rejects.toMatchObject({ name: 'SettingNotFoundError' });
    });
  });

  describe('bulk requests', () => {
    const named = (settingName: string) => ({ subsystemName: 'S', settingName });
    const of = (settingName: string, etag: string | null = '"1"') => ({
      ...named(settingName),
      settingValue: 1,
      etag,
    });
    const found = (settings: object[], missing: object[] = [], unread: object[] = []) =>
      ok(JSON.stringify({ settings, missing, unread }));

    it('returns settings in the order of the names, null for missing ones, and requests unread ones again', async () => {
      const { client, requests } = scripted([
        BROKEN,
        found([of('B')], [named('c')], [named('a'), named('d')]),
        found([of('a'), of('D')]),
      ]);
      const names = [named('b'), { ...named('c'), other: 1 }, named('a'), named('d')];
      expect(await client.getSettings(names)).toEqual([of('B'), null, of('a'), of('D')]);
      expect(requests.map(({ method, url }) => `${method} ${url}`)).toEqual(
        Array.from({ length: 3 }, () => 'POST http://settings.test/platform/v1/commands/read'),
      );
      expect(await requests[1]!.json()).toEqual({ settings: ['b', 'c', 'a', 'd'].map(named) });
      expect(await requests[2]!.json()).toEqual({ settings: ['a', 'd'].map(named) });
    });

    it('reads a thousand settings per request, and sends no request for none', async () => {
      const echo = async (request: Request) =>
        found([], ((await request.json()) as { settings: object[] }).settings)(request);
      const { client, requests } = scripted([echo]);
      const names = Array.from({ length: 2_500 }, (_, index) => named(String(index)));
      expect(await client.getSettings(names)).toEqual(names.map(() => null));
      expect(requests).toHaveLength(3);
      expect(await client.getSettings([])).toEqual([]);
      expect(requests).toHaveLength(3);
    });

    it.each([
      ['another setting', found([of('x')])],
      ['a list without the setting', found([])],
      ['a list of unread names only, which would repeat for ever', found([], [], [named('a')])],
      ['something else', ok('{"a":1}')],
      ['null', ok('null')],
    ])('refuses %s as a response', async (_what, step) => {
      const { client } = scripted([step]);
      const error = { name: 'SettingsProtocolError' };
      await expect(client.getSettings([named('a')])).rejects.toMatchObject(error);
      const write = { ...named('a'), settingValue: 1 };
      await expect(client.writeSettings([write, { ...write, settingName: 'b' }])).rejects.toMatchObject(
        error,
      );
    });

    it('writes with conditions and exact values, and retries five times under one key', async () => {
      const { client, requests } = scripted([
        ...Array.from({ length: 5 }, () => problem(503)),
        found([of('a', '"2"'), of('b', '"3"'), of('c', null)]),
      ]);
      const written = await client.writeSettings([
        { ...named('a'), settingValue: { x: 1 }, ifMatch: '"1"' },
        { ...named('b'), valueText: '1.00', ifNoneMatch: '*' },
        { ...named('c'), delete: true },
      ]);
      expect(written.map(({ etag }) => etag)).toEqual(['"2"', '"3"', null]);
      expect(await requests[5]!.text()).toBe(
        '{"writes":[{"subsystemName":"S","settingName":"a","ifMatch":"\\"1\\"","settingValue":{"x":1}},' +
          '{"subsystemName":"S","settingName":"b","ifNoneMatch":"*","settingValue":1.00},' +
          '{"subsystemName":"S","settingName":"c","delete":true}]}',
      );
      expect(new Set(requests.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(1);
      expect(requests).toHaveLength(6);
    });

    it('refuses values that cannot be stored without a request, and reports a failed condition', async () => {
      const { client, requests } = scripted([problem(412)]);
      for (const value of [{ settingValue: null }, { settingValue: undefined }, { valueText: '1}' }])
        await expect(client.writeSettings([{ ...named('a'), ...value } as never])).rejects.toThrow(TypeError);
      expect(requests).toHaveLength(0);
      await expect(client.writeSettings([{ ...named('a'), delete: true }])).rejects.toMatchObject({
        name: 'SettingChangedError',
      });
    });

    it('discards cached responses of the settings that it writes', async () => {
      const { client } = scripted([setting('1'), found([of('n', '"2"')]), setting('2', '"2"')], {
        cache: true,
      });
      expect(await client.getValue('S', 'n')).toMatchObject({ settingValue: 1 });
      await client.writeSettings([{ ...named('N'), settingValue: 2 }]);
      expect(await client.getValue('S', 'n')).toMatchObject({ settingValue: 2 });
    });
  });

  it.each(['', '.', '..', '\ud800'])('refuses the name %j, which no URL can carry', async (name) => {
    const { client, requests } = scripted([ok('1')]);
    await expect(client.getValue('S', name)).rejects.toThrow(TypeError);
    await expect(client.getValue(name, 'n')).rejects.toThrow(TypeError);
    await expect(client.putSetting('S', name, 1)).rejects.toThrow(TypeError);
    expect(requests).toHaveLength(0);
  });

  it.each(['', 'settings', 'ftp://a', 'http://a?b', 'http://a#b', 'http://user:pass@a'])(
    'refuses the base URL %j',
    (baseUrl) => {
      expect(() => new SettingsClient({ baseUrl, token: 't' })).toThrow(TypeError);
    },
  );
});
