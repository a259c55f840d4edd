import { BROKEN, NOT_FOUND, ok, problem, scripted, setting } from '../test/scripted-service';
import type { Step } from '../test/scripted-service';
import type { SettingChange } from './response-cache';

const NOT_MODIFIED: Step = () => new Response(null, { status: 304 });

describe('the cache', () => {
  it('is off by default', async () => {
    const { client, requests } = scripted([ok('1')]);
    await client.getValue('S', 'n');
    await client.getValue('S', 'n');
    expect(requests).toHaveLength(2);
  });

  it('serves a response for exactly 30 s', async () => {
    const { client, requests, time } = scripted([ok('1', { etag: '"1"' }), ok('2', { etag: '"2"' })], {
      cache: true,
    });
    expect(await client.getValue('S', 'n')).toBe(1);
    time.advance(29_999);
    expect(await client.getValue('s', 'N')).toBe(1);
    expect(requests).toHaveLength(1);
    time.advance(1);
    expect(await client.getValue('S', 'n')).toBe(2);
    expect(requests[1]?.headers.get('if-none-match')).toBe('"1"');
  });

  it('serves a response for another 30 s after a 304', async () => {
    const { client, requests, time } = scripted([ok('1', { etag: '"1"' }), NOT_MODIFIED], { cache: true });
    await client.getValue('S', 'n');
    time.advance(30_000);
    expect(await client.getValue('S', 'n')).toBe(1);
    time.advance(29_999);
    expect(await client.getValue('S', 'n')).toBe(1);
    expect(requests).toHaveLength(2);
  });

  it('counts the age from the start of the request', async () => {
    const { client, requests, time } = scripted([BROKEN, ok('1'), ok('2')], { cache: { ttlMs: 1_000 } });
    await client.getValue('S', 'n');
    time.advance(800);
    expect(await client.getValue('S', 'n')).toBe(2);
    expect(requests).toHaveLength(3);
  });

  it('does not keep a response fresh for longer when the clock is set back', async () => {
    const { client, requests, time } = scripted([ok('1'), ok('2')], { cache: true });
    await client.getValue('S', 'n');
    time.advance(-3_600_000);
    expect(await client.getValue('S', 'n')).toBe(2);
    expect(requests).toHaveLength(2);
  });

  it('sends one request for concurrent reads', async () => {
    const { client, requests } = scripted([ok('1')], { cache: true });
    const values = await Promise.all(Array.from({ length: 10 }, () => client.getValue('S', 'n')));
    expect(values).toEqual(values.map(() => 1));
    expect(requests).toHaveLength(1);
  });

  it('does not end the shared request when one of its callers aborts', async () => {
    const { client, requests } = scripted([ok('1')], { cache: true });
    const controller = new AbortController();
    const first = client.getValue('S', 'n', { signal: controller.signal });
    const second = client.getValue('S', 'n');
    controller.abort(new Error('enough'));
    await expect(first).rejects.toThrow('enough');
    expect(await second).toBe(1);
    expect(requests).toHaveLength(1);
  });

  it('caches that a setting does not exist, but no other error', async () => {
    const { client, requests, time } = scripted([NOT_FOUND, problem(403), ok('1'), NOT_FOUND, BROKEN], {
      cache: true,
    });
    expect(await client.getValueOrNull('S', 'n')).toBeNull();
    await expect(client.getValue('s', 'N')).rejects.toMatchObject({ name: 'SettingNotFoundError' });
    expect(requests).toHaveLength(1);
    time.advance(30_000);
    await expect(client.getValue('S', 'n')).rejects.toMatchObject({ status: 403 });
    expect(await client.getValue('S', 'n')).toBe(1);
    time.advance(30_000);
    expect(await client.getValueOrNull('S', 'n')).toBeNull();
    time.advance(30_000);
    expect(await client.getValueOrNull('S', 'n')).toBeNull();
    expect(requests).toHaveLength(4 + 6);
  });

  it('retries before it serves a stale response', async () => {
    const { client, requests, time } = scripted([ok('1'), problem(503), BROKEN, ok('2')], { cache: true });
    await client.getValue('S', 'n');
    time.advance(30_000);
    expect(await client.getValue('S', 'n')).toBe(2);
    expect(requests).toHaveLength(4);
  });

  it('serves the stale response for 5 s after a failure without a request', async () => {
    const { client, requests, time } = scripted([ok('1'), BROKEN], { cache: true });
    await client.getValue('S', 'n');
    time.advance(30_000);
    await client.getValue('S', 'n');
    time.advance(4_999);
    expect(await client.getValue('S', 'n')).toBe(1);
    expect(requests).toHaveLength(1 + 6);
    time.advance(1);
    expect(await client.getValue('S', 'n')).toBe(1);
    expect(requests).toHaveLength(1 + 12);
  });

  it.each([{ ttlMs: NaN }, { ttlMs: -1 }, { staleIfErrorMs: NaN }, { maxEntries: 0 }])(
    'refuses %j',
    (cache) => {
      expect(() => scripted([ok('1')], { cache })).toThrow(TypeError);
    },
  );

  it('does not confuse value and setting, or settings whose joined names are equal', async () => {
    const { client, requests } = scripted([ok('1'), setting('1'), ok('2'), setting('2')], { cache: true });
    await client.getValue('S', 'x');
    await client.getSetting('S', 'x');
    await client.getValue('S', 'x/value');
    await client.getSetting('S/settings', 'x');
    expect(requests).toHaveLength(4);
  });

  it('serves a stale response for ten minutes while the service is unreachable, after five retries', async () => {
    const { client, requests, time } = scripted([ok('1', { etag: '"1"' }), BROKEN], { cache: true });
    await client.getValue('S', 'n');
    time.advance(629_999);
    expect(await client.getValue('S', 'n')).toBe(1);
    expect(requests).toHaveLength(1 + 6);
    time.advance(5_000);
    await expect(client.getValue('S', 'n')).rejects.toMatchObject({
      name: 'SettingsUnavailableError',
      attempts: 6,
    });
  });

  it('serves no stale response with staleIfErrorMs 0, or when access is refused', async () => {
    const strict = scripted([ok('1'), BROKEN], { cache: { staleIfErrorMs: 0 } });
    await strict.client.getValue('S', 'n');
    strict.time.advance(30_000);
    await expect(strict.client.getValue('S', 'n')).rejects.toMatchObject({
      name: 'SettingsUnavailableError',
    });
    const refused = scripted([ok('1'), problem(403)], { cache: true });
    await refused.client.getValue('S', 'n');
    refused.time.advance(30_000);
    await expect(refused.client.getValue('S', 'n')).rejects.toMatchObject({ status: 403 });
  });

  it('discards a setting that the same client writes or deletes', async () => {
    const steps = [ok('1'), setting('2'), ok('2'), setting('2'), NOT_FOUND];
    const { client } = scripted(steps, { cache: true });
    expect(await client.getValue('S', 'n')).toBe(1);
    await client.putSetting('s', 'N', 2);
    expect(await client.getValue('S', 'n')).toBe(2);
    await client.deleteSetting('S', 'n');
    expect(await client.getValueOrNull('S', 'n')).toBeNull();
  });

  it('does not cache a response requested before a write', async () => {
    let respondOld = (): void => undefined;
    const old: Step = () =>
      new Promise((resolve) => {
        respondOld = () => {
          resolve(new Response('1', { headers: { 'content-type': 'application/json' } }));
        };
      });
    const { client, requests } = scripted([old, setting('2'), ok('2')], { cache: true });
    const before = client.getValue('S', 'n');
    while (requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await client.putSetting('S', 'n', 2);
    expect(await client.getValue('S', 'n')).toBe(2);
    respondOld();
    expect(await before).toBe(1);
    expect(await client.getValue('S', 'n')).toBe(2);
    expect(requests).toHaveLength(3);
  });

  it('reports that a cached setting was changed or deleted', async () => {
    const changes: SettingChange[] = [];
    const cache = { onChange: (change: SettingChange) => changes.push(change) };
    const { client, time } = scripted([ok('1'), ok('1'), ok('2'), NOT_FOUND], { cache });
    for (let read = 0; read < 4; read += 1) {
      await client.getValueOrNull('S', 'n');
      time.advance(30_000);
    }
    expect(changes).toEqual([
      { subsystemName: 'S', settingName: 'n' },
      { subsystemName: 'S', settingName: 'n' },
    ]);
  });

  it('evicts the least recently used when it is full', async () => {
    const { client, requests } = scripted([ok('1')], { cache: { maxEntries: 2 } });
    for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) await client.getValue('S', name);
    expect(requests.map(({ url }) => url.split('/').at(-2))).toEqual(['a', 'b', 'c', 'b']);
  });
});
