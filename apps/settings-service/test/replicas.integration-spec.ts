import { SettingsClient } from '@platform/settings-client';
import { testAccessToken } from '@platform/testing';
import { buildService, startReplica } from './built-service';
import type { Replica } from './built-service';
import { contradictions } from './linearizability';
import type { Observation } from './linearizability';
import { prepareSettings } from './settings-fixture';
import type { SettingsSurroundings } from './settings-fixture';

describe('two processes of the built service', () => {
  let surroundings: SettingsSurroundings;
  let replicas: Replica[] = [];

  const start = (): Promise<Replica> => startReplica(surroundings.environment);
  const urlOf = (index: number): string => replicas[index % replicas.length]?.url ?? '';

  beforeAll(async () => {
    await buildService();
    surroundings = await prepareSettings();
    replicas = await Promise.all([start(), start()]);
  }, 120_000);
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.process.stop()));
    await surroundings.close();
  });

  const clientOf = (index: number) =>
    new SettingsClient({ baseUrl: urlOf(index), token: testAccessToken({ personas: 1 }) });
  const historyOf = (key: string) =>
    surroundings.database.query<{ operation: string; value: string }>(
      'SELECT operation, value_text AS value FROM settings.setting_history WHERE setting_key = $1 ORDER BY history_id',
      [key],
    );

  it('complete all of 100 concurrent PUTs of one key', async () => {
    const clients = [clientOf(0), clientOf(1)];
    const headers = {
      authorization: `Bearer ${testAccessToken({ personas: 1 })}`,
      'content-type': 'application/json',
    };
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const url = `${urlOf(index)}/platform/v1/subsystems/Hot/settings/hundred`;
        return (await fetch(url, { method: 'PUT', headers, body: `{"settingValue":${String(index)}}` }))
          .status;
      }),
    );
    expect(statuses).toEqual(statuses.map(() => 200));
    expect(await historyOf('hundred')).toHaveLength(100);
    expect(await clients[0]?.getValue('Hot', 'hundred')).toBe(await clients[1]?.getValue('Hot', 'hundred'));
  });

  it('are linearizable for each key under random PUTs, DELETEs and GETs', async () => {
    const clients = [clientOf(0), clientOf(1)];
    const keys = ['a', 'b', 'c'];
    const seen = new Map<string, Observation[]>(keys.map((key) => [key, []]));
    let written = 0;
    const operate = async (worker: number): Promise<void> => {
      const client = clients[worker % 2]!;
      for (let step = 0; step < 40; step += 1) {
        const key = keys[Math.floor(Math.random() * keys.length)]!;
        const kind = (['PUT', 'DELETE', 'GET', 'GET'] as const)[Math.floor(Math.random() * 4)]!;
        const value = String((written += 1));
        const startedAt = performance.now();
        const found = await act(client, kind, key, value);
        seen.get(key)?.push({ kind, value: found, startedAt, endedAt: performance.now() });
      }
    };
    await Promise.all(Array.from({ length: 10 }, (_, worker) => operate(worker)));
    for (const key of keys) {
      const history = await historyOf(key);
      expect(history.length).toBeGreaterThan(10);
      expect(contradictions(history, seen.get(key) ?? [])).toEqual([]);
    }
  }, 60_000);

  it('lose no acknowledged write when one is killed, and clients notice nothing', async () => {
    const acknowledged: string[] = [];
    const doomed = replicas[0]!;
    // Acts as a load balancer: a request that cannot connect to the killed replica goes to the other one.
    const balanced = (async (input: string, init: RequestInit) => {
      try {
        return await fetch(input, init);
      } catch (error) {
        if (init.signal?.aborted === true) throw error;
        return fetch(input.replace(doomed.url, urlOf(1)), init);
      }
    }) as typeof fetch;
    const client = new SettingsClient({
      baseUrl: doomed.url,
      token: testAccessToken({ personas: 1 }),
      fetch: balanced,
    });
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      for (let step = 0; step < 25; step += 1) {
        if (writer === 0 && step === 8) doomed.process.child.kill('SIGKILL');
        const name = `killed ${String(writer)} ${String(step)}`;
        await client.putSetting('Killed', name, step);
        acknowledged.push(name);
      }
    });
    await Promise.all(writers);
    expect(acknowledged).toHaveLength(200);
    const kept = await surroundings.database.query<{ setting_key: string; entries: number }>(
      `SELECT setting_key, count(history_id)::int AS entries
         FROM settings.setting JOIN settings.setting_history USING (subsystem_key, setting_key)
        WHERE subsystem_key = 'killed' GROUP BY setting_key`,
    );
    expect(kept.map((row) => row.setting_key).sort()).toEqual([...acknowledged].sort());
    expect(kept.every((row) => row.entries === 1)).toBe(true);
    replicas = [await start(), replicas[1]!];
    expect(await clientOf(0).getValue('Killed', 'killed 7 24')).toBe(24);
  }, 60_000);
});

async function act(
  client: SettingsClient,
  kind: Observation['kind'],
  key: string,
  value: string,
): Promise<string | null> {
  if (kind === 'GET') return textOrNull(client.getValue('Random', key));
  if (kind === 'DELETE')
    return textOrNull(client.deleteSetting('Random', key).then(({ settingValue }) => settingValue));
  await client.putSetting('Random', key, Number(value));
  return value;
}

async function textOrNull(found: Promise<unknown>): Promise<string | null> {
  try {
    return JSON.stringify(await found);
  } catch (error) {
    if (error instanceof Error && error.name === 'SettingNotFoundError') return null;
    throw error;
  }
}
