import { SettingsClient } from '@platform/settings-client';
import type { SettingsClientOptions } from '@platform/settings-client';
import { testAccessToken } from '@platform/testing';
import { startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

/** Like Array.fromAsync, which the compiler's library lacks. */
async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Returns a fetch that loses its first response. */
function losingFirstResponse(): typeof fetch {
  let calls = 0;
  return async (...request: Parameters<typeof fetch>) => {
    const answer = await fetch(...request);
    if ((calls += 1) === 1) throw new TypeError('connection lost after the service had responded');
    return answer;
  };
}

describe('settings-client on the real service', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings();
  });
  afterAll(() => service.close());

  const newClient = (options: Partial<SettingsClientOptions> = {}) =>
    new SettingsClient({
      baseUrl: service.urls[0] ?? '',
      token: testAccessToken({ personas: 1 }),
      ...options,
    });

  it('writes, reads, lists and deletes settings', async () => {
    const client = newClient();
    const written = await client.putSetting('Client/ä', 'İ?#%', { a: [1, null], b: 'ü' });
    expect(written).toMatchObject({
      subsystemName: 'Client/ä',
      settingName: 'İ?#%',
      etag: expect.any(String),
    });
    expect(await client.getSetting('client/Ä', 'İ?#%')).toEqual(written);
    expect(await client.getValue('Client/ä', 'İ?#%')).toEqual({ a: [1, null], b: 'ü' });
    const { etag: _etag, ...setting } = written;
    expect(await collect(client.listSubsystemSettings('CLIENT/ä'))).toEqual([setting]);
    expect(await client.deleteSetting('Client/ä', 'İ?#%')).toEqual(setting);
    expect(await client.getSettingOrNull('Client/ä', 'İ?#%')).toBeNull();
    expect(await client.getValueOrNull('Client/ä', 'İ?#%')).toBeNull();
    await expect(client.deleteSetting('Client/ä', 'İ?#%')).rejects.toMatchObject({
      name: 'SettingNotFoundError',
    });
  });

  it('keeps the text of a value', async () => {
    const client = newClient();
    const text = '[ 12345678901234567890.50, -0, "\\ud800" ]';
    await client.putValueText('Client', 'text', text);
    expect(await client.getValueText('Client', 'text')).toBe(text);
  });

  it('reports a 404 of a wrong base URL as an HTTP error, not as a missing setting', async () => {
    const client = newClient({ baseUrl: `${service.urls[0] ?? ''}/elsewhere` });
    await expect(client.getValueOrNull('Client', 'text')).rejects.toMatchObject({
      name: 'SettingsHttpError',
      status: 404,
    });
  });

  it('writes conditionally on an ETag', async () => {
    const client = newClient();
    const first = await client.putSetting('Client', 'guarded', 1, { ifNoneMatch: '*' });
    await client.putSetting('Client', 'guarded', 2, { ifMatch: first.etag });
    await expect(client.putSetting('Client', 'guarded', 3, { ifMatch: first.etag })).rejects.toMatchObject({
      name: 'SettingChangedError',
    });
    expect(await client.getValue('Client', 'guarded')).toBe(2);
  });

  it('writes once although the response to the first attempt was lost', async () => {
    await newClient({ fetch: losingFirstResponse() }).putSetting('Client', 'once', 1);
    await newClient({ fetch: losingFirstResponse() }).deleteSetting('Client', 'once');
    const history = await service.database.query(
      "SELECT operation FROM settings.setting_history WHERE setting_key = 'once' ORDER BY history_id",
    );
    expect(history).toEqual([{ operation: 'write' }, { operation: 'delete' }]);
  });

  it('reads and writes many settings, all or nothing, once although a response was lost', async () => {
    const client = newClient({ fetch: losingFirstResponse() });
    // Decomposed (NFD), as a file name may be. The service composes it (NFC).
    const names = ['A\u0308', 'b', 'c'].map((settingName) => ({ subsystemName: 'Client many', settingName }));
    const [a, b, c] = names as [(typeof names)[0], (typeof names)[0], (typeof names)[0]];
    const written = await client.writeSettings([
      { ...a, settingValue: 1, ifNoneMatch: '*' },
      { ...b, valueText: '2.0' },
    ]);
    expect(await client.getSettings([c, b, a, b])).toEqual([null, written[1], written[0], written[1]]);
    await expect(
      client.writeSettings([
        { ...b, delete: true },
        { ...a, settingValue: 3, ifMatch: '"1"' },
      ]),
    ).rejects.toMatchObject({
      name: 'SettingChangedError',
      problem: { errors: { 'writes.1': [expect.any(String)] } },
    });
    const [deleted] = await client.writeSettings([{ ...b, delete: true, ifMatch: written[1]!.etag! }]);
    expect(deleted).toEqual({ ...written[1], etag: null });
    const history = await service.database.query(
      "SELECT operation FROM settings.setting_history WHERE subsystem_key = 'client many' ORDER BY history_id",
    );
    expect(history.map(({ operation }) => operation)).toEqual(['write', 'write', 'delete']);
  });

  it('lists in pages', async () => {
    const client = newClient();
    await Promise.all(
      Array.from({ length: 7 }, (_, index) => client.putSetting('Client pages', String(index), index)),
    );
    const settings = await collect(client.listSubsystemSettings('client pages', { pageSize: 3 }));
    expect(settings.map(({ settingValue }) => settingValue)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    const all = await collect(client.listSettings({ pageSize: 2 }));
    expect(all).toEqual(expect.arrayContaining(settings));
  });

  it('revalidates what it cached', async () => {
    const statuses: number[] = [];
    const observed = (async (...request: Parameters<typeof fetch>) => {
      const answer = await fetch(...request);
      statuses.push(answer.status);
      return answer;
    }) as typeof fetch;
    const client = newClient({ cache: { ttlMs: 0 }, fetch: observed });
    await newClient().putSetting('Client', 'cached', 1);
    expect(await client.getValue('Client', 'cached')).toBe(1);
    expect(await client.getValue('Client', 'cached')).toBe(1);
    await newClient().putSetting('Client', 'cached', 2);
    expect(await client.getValue('Client', 'cached')).toBe(2);
    expect(statuses).toEqual([200, 304, 200]);
  });

  it('gets 403 for requests that its token does not allow', async () => {
    const client = newClient({ token: testAccessToken() });
    await expect(client.putSetting('Client', 'refused', 1)).rejects.toMatchObject({ status: 403 });
    await expect(collect(client.listSettings())).rejects.toMatchObject({ status: 403 });
  });
});
