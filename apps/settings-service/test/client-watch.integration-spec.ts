import { SettingsClient } from '@platform/settings-client';
import type { WatchOptions } from '@platform/settings-client';
import { TcpProxy, eventually, findFreePorts, testAccessToken } from '@platform/testing';
import { PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

describe("settings-client's watch on the real service", () => {
  let service: SettingsFixture;
  let network: TcpProxy;
  const opened: ReturnType<SettingsClient['watch']>[] = [];

  beforeAll(async () => {
    service = await startSettings({ variables: { CHANGES_MAX_WATCHERS: '2' } });
    network = await TcpProxy.start(service.urls[0]!);
  });
  afterEach(async () => {
    for (const watch of opened.splice(0)) await watch.close();
    await network.restore();
  });
  afterAll(async () => {
    await network.stop();
    await service.close();
  });

  const put = (name: string, settingValue: unknown) =>
    service.api.put(settingPath('Watch', name)).set(PARTNER).send({ settingValue }).expect(200);
  /** Opens a watch with its own client, and records its states and its requests for changes. */
  const open = (
    {
      personas = 1,
      sub = 'personid:1',
      baseUrl = network.url,
    }: { personas?: number; sub?: string; baseUrl?: string },
    options: WatchOptions = {},
  ) => {
    const requests: { url: string; status: number }[] = [];
    const observed = (async (...request: Parameters<typeof fetch>) => {
      const response = await fetch(...request);
      const { url, status } = response;
      if (url.includes('/changes')) requests.push({ url, status });
      return response;
    }) as typeof fetch;
    const states: unknown[] = [];
    const client = new SettingsClient({
      baseUrl,
      token: testAccessToken({ personas, sub, personId: Number(sub.slice('personid:'.length)) }),
      fetch: observed,
    });
    const watch = client.watch({ onState: (state) => states.push(state), ...options });
    opened.push(watch);
    return { watch, states, requests };
  };

  it('rejects a Customer that watches all settings, and serves one that watches a subsystem', async () => {
    await put('customer', 1);
    await expect(open({ personas: 2 }).watch.ready).rejects.toMatchObject({ status: 403 });
    const { watch } = open({ personas: 2 }, { subsystemName: 'watch' });
    await watch.ready;
    expect(await watch.getValue('Watch', 'customer')).toBe(1);
    await put('customer', 2);
    await eventually(() => expect(watch.peek('Watch', 'customer')).toBe(2));
  });

  it('rejects a wrong URL and a wrong token, and waits for an absent service', async () => {
    await expect(open({ baseUrl: `${network.url}/elsewhere` }).watch.ready).rejects.toMatchObject({
      status: 404,
    });
    const client = new SettingsClient({ baseUrl: network.url, token: 'no token' });
    const refused = client.watch();
    opened.push(refused);
    await expect(refused.ready).rejects.toMatchObject({ status: 401 });
    const [port] = await findFreePorts(1);
    const { watch, states } = open({ baseUrl: `http://127.0.0.1:${String(port)}` });
    let isSettled = false;
    const settled = (): boolean => (isSettled = true);
    watch.ready.then(settled, settled);
    await eventually(() => expect(states).toHaveLength(1));
    expect(isSettled).toBe(false);
  });

  it('serves the last known value as stale during an outage, and the new one afterwards', async () => {
    await put('away', 'v1');
    const { watch, states } = open({}, { subsystemName: 'Watch' });
    await watch.ready;
    expect(await watch.getValue('Watch', 'away')).toBe('v1');
    await network.refuse();
    network.cut();
    await put('away', 'v2');
    await eventually(() => expect(states).toHaveLength(2));
    expect(await watch.getDetails('Watch', 'away')).toEqual({ value: 'v1', isStale: true });
    await network.restore();
    await eventually(
      async () => expect(await watch.getDetails('Watch', 'away')).toEqual({ value: 'v2', isStale: false }),
      {
        timeoutMs: 30_000,
      },
    );
    expect(states).toEqual([null, expect.any(Error), null]);
  }, 60_000);

  it('reports a full replica as one state, still receives changes, and backs off', async () => {
    await put('full', 1);
    // Two callers of one application have one place each, so a third displaces neither.
    const holders = ['personid:2', 'personid:3'].map((sub) =>
      open({ sub }, { subsystemName: 'Watch', waitSeconds: 30 }),
    );
    for (const { watch } of holders) await watch.ready;
    const { watch, states, requests } = open({ sub: 'personid:4' }, { subsystemName: 'Watch' });
    await watch.ready;
    expect(await watch.getValue('Watch', 'full')).toBe(1);
    await eventually(
      () => expect(requests.filter(({ status }) => status === 503).length).toBeGreaterThan(2),
      {
        timeoutMs: 30_000,
      },
    );
    expect(states).toEqual([
      null,
      expect.objectContaining({ name: 'SettingsUnavailableError', retryAfterMs: 1_000 }),
    ]);
    // The client waits at least one second after each refusal, and then sends one request without a wait.
    expect(requests.length).toBeLessThan(12);
    for (const holder of holders) await holder.watch.close();
    await put('full', 2);
    await eventually(() => expect(watch.peek('Watch', 'full')).toBe(2), { timeoutMs: 30_000 });
    await eventually(() => expect(states.at(-1)).toBeNull(), { timeoutMs: 40_000 });
  }, 120_000);

  it('continues when its wait ends early to make room for a caller with fewer watches', async () => {
    await put('displaced', 1);
    const many = [1, 2].map(() => open({ sub: 'personid:5' }, { subsystemName: 'Watch' }));
    for (const { watch } of many) await watch.ready;
    const newcomer = open({ sub: 'personid:6' }, { subsystemName: 'Watch' });
    await newcomer.watch.ready;
    const watched = [...many, newcomer].map(({ watch }) => watch);
    for (const watch of watched) await watch.getValue('Watch', 'displaced');
    await put('displaced', 2);
    for (const watch of watched)
      await eventually(() => expect(watch.peek('Watch', 'displaced')).toBe(2), { timeoutMs: 30_000 });
  }, 60_000);
});
