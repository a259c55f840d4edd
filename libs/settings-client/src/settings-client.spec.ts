import { BROKEN, NOT_FOUND, SILENT, ok, problem, scripted, setting } from '../test/scripted-service';
import { SettingsClient } from './settings-client';

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('SettingsClient', () => {
  describe('reads', () => {
    it('reads a setting with its ETag', async () => {
      const { client, requests } = scripted([setting('{"a":1}', '"7"')]);
      expect(await client.getSetting('Sub/system', 'nä me')).toEqual({
        ...{ subsystemName: 'S', settingName: 'n', settingValue: { a: 1 }, etag: '"7"' },
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

    it("makes null of a setting's own 404 only, without a retry", async () => {
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
      ['half of a JSON text', ok('{"a":')],
    ])('refuses %s as an answer', async (_kind, step) => {
      await expect(scripted([step]).client.getValue('S', 'n')).rejects.toMatchObject({
        name: 'SettingsProtocolError',
      });
    });

    it('refuses another object as a setting', async () => {
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

    it('reads lists page by page, only as far as asked', async () => {
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

    it('ends a list that leads in a circle with an error', async () => {
      const { client } = scripted([ok('{"settings":[],"nextPageKey":"same"}')]);
      const all = async () => {
        for await (const each of client.listSettings()) void each;
      };
      await expect(all()).rejects.toMatchObject({ name: 'SettingsProtocolError' });
    });
  });

  describe('retries', () => {
    it.each([
      ['network errors', BROKEN],
      ['408', problem(408)],
      ['429', problem(429)],
      ['500', problem(500)],
      ['503', problem(503)],
      [
        'bodies that break off',
        () => new Response(new ReadableStream({ pull: (stream) => stream.error(new TypeError('reset')) })),
      ],
    ])('retries five times on %s, waiting 200 ms doubled each time', async (_kind, step) => {
      const { client, time, requests } = scripted([step]);
      await expect(client.getValue('S', 'n')).rejects.toMatchObject({
        name: 'SettingsUnavailableError',
        attempts: 6,
      });
      expect(requests).toHaveLength(6);
      expect(time.waits).toEqual([200, 400, 800, 1_600, 3_200]);
    });

    it('waits half of that at least', async () => {
      const { client, time } = scripted([BROKEN]);
      time.random = () => 0;
      await expect(client.getValue('S', 'n')).rejects.toThrow();
      expect(time.waits).toEqual([100, 200, 400, 800, 1_600]);
    });

    it.each([400, 403, 409, 412, 422, 501, 505])('does not retry on %d', async (status) => {
      const { client, requests } = scripted([problem(status)]);
      await expect(client.getValue('S', 'n')).rejects.toMatchObject({
        status,
        problem: { detail: `answer ${String(status)}` },
      });
      expect(requests).toHaveLength(1);
    });

    it('succeeds with the first good answer', async () => {
      const { client, time } = scripted([BROKEN, problem(503), ok('1')]);
      expect(await client.getValue('S', 'n')).toBe(1);
      expect(time.waits).toEqual([200, 400]);
    });

    it('honours Retry-After up to 5 s', async () => {
      const { client, time } = scripted([
        problem(429, undefined, { 'retry-after': '3' }),
        problem(503, undefined, { 'retry-after': '3600' }),
        problem(503, undefined, { 'retry-after': 'Mon, 05 Jan 2026 00:00:10 GMT' }),
        ok('1'),
      ]);
      await client.getValue('S', 'n');
      expect(time.waits).toEqual([3_000, 5_000, 2_000]);
    });

    it('gives up an attempt after its time limit, and tries again', async () => {
      const { client, time, requests } = scripted([SILENT, ok('1')]);
      const value = client.getValue('S', 'n');
      while (time.attemptsUnderWay === 0) await settle();
      time.expireAttempts();
      expect(await value).toBe(1);
      expect(requests).toHaveLength(2);
      expect(time.attemptsUnderWay).toBe(0);
    });

    it('spends its retries from one budget for all calls', async () => {
      const { client, requests } = scripted([BROKEN], { retryBudget: { capacity: 7 } });
      await expect(client.getValue('S', 'a')).rejects.toMatchObject({ attempts: 6 });
      await expect(client.getValue('S', 'b')).rejects.toMatchObject({ attempts: 3 });
      await expect(client.getValue('S', 'c')).rejects.toMatchObject({ attempts: 1 });
      expect(requests).toHaveLength(10);
    });

    it("ends at once, with the caller's reason, when the caller aborts", async () => {
      const reason = new Error('enough');
      const before = scripted([ok('1')]);
      await expect(before.client.getValue('S', 'n', { signal: AbortSignal.abort(reason) })).rejects.toBe(
        reason,
      );
      expect(before.requests).toHaveLength(0);
      const during = scripted([SILENT]);
      const controller = new AbortController();
      const value = during.client.getValue('S', 'n', { signal: controller.signal });
      while (during.requests.length === 0) await settle();
      controller.abort(reason);
      await expect(value).rejects.toBe(reason);
      expect(during.requests).toHaveLength(1);
      const between = scripted([BROKEN]);
      const stop = new AbortController();
      between.time.random = () => {
        stop.abort(reason);
        return 1;
      };
      await expect(between.client.getValue('S', 'n', { signal: stop.signal })).rejects.toBe(reason);
      expect(between.requests).toHaveLength(1);
    });
  });

  describe('tokens', () => {
    it('fetches another token once after a 401', async () => {
      const tokens = ['old', 'new'];
      const refused: string[] = [];
      const token = {
        getToken: () => Promise.resolve(tokens[0] ?? ''),
        invalidate: (each: string) => {
          refused.push(each);
          tokens.shift();
        },
      };
      const { client, requests, time } = scripted([problem(401), ok('1')], { token });
      expect(await client.getValue('S', 'n')).toBe(1);
      expect(requests.map(({ headers }) => headers.get('authorization'))).toEqual([
        'Bearer old',
        'Bearer new',
      ]);
      expect(refused).toEqual(['old']);
      expect(time.waits).toEqual([]);
    });

    it('gives up on a second 401', async () => {
      let issued = 0;
      const { client, requests } = scripted([problem(401)], {
        token: () => `token ${String((issued += 1))}`,
      });
      await expect(client.getValue('S', 'n')).rejects.toMatchObject({
        name: 'SettingsHttpError',
        status: 401,
      });
      expect(requests).toHaveLength(2);
    });

    it('does not ask again with the same token', async () => {
      const { client, requests } = scripted([problem(401)]);
      await expect(client.getValue('S', 'n')).rejects.toMatchObject({ status: 401 });
      expect(requests).toHaveLength(1);
    });

    it('never shows a token in an error', async () => {
      const { client } = scripted([BROKEN], { token: 's3cret' });
      const error: unknown = await client.getValue('S', 'n').catch((caught: unknown) => caught);
      expect(JSON.stringify(error) + String(error) + String((error as Error).stack)).not.toContain('s3cret');
    });
  });

  describe('writes', () => {
    it('repeats a PUT under one idempotency key, and takes another for the next', async () => {
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

    it('sends a value given as text as it is', async () => {
      const { client, requests } = scripted([setting('1')]);
      await client.putValueText('S', 'n', ' 1.00 ');
      expect(await requests[0]!.text()).toBe('{"settingValue": 1.00 }');
      for (const text of ['', '1}', '1,"a":2', 'null', ' null '])
        await expect(client.putValueText('S', 'n', text)).rejects.toThrow(TypeError);
      expect(requests).toHaveLength(1);
    });

    it('refuses null and what JSON cannot hold before it sends anything', async () => {
      const { client, requests } = scripted([setting('1')]);
      for (const value of [null, undefined, NaN, () => 1]) {
        await expect(client.putSetting('S', 'n', value as never)).rejects.toThrow(TypeError);
      }
      expect(requests).toHaveLength(0);
    });

    it('tells of a condition that failed', async () => {
      const { client } = scripted([problem(412)]);
      await expect(client.putSetting('S', 'n', 1, { ifMatch: '"1"' })).rejects.toMatchObject({
        name: 'SettingChangedError',
      });
    });

    it('deletes and resolves with what was deleted', async () => {
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
