import { SettingsClient } from '@platform/settings-client';
import type { PassingTime } from '@platform/settings-client';
import { eventually, startPrivatePostgresql, testAccessToken } from '@platform/testing';
import { SYSTEM_CLOCK, sleep } from '@platform/time';
import { CUSTOMER, PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

const ROUNDS = 3;
const WRITERS = 8;

interface Entry {
  key: string;
  values: string[];
}

/**
 * Multiplies the client's retry delays by five. The client retries only five times, and a busy machine takes
 * longer to restart a crashed server.
 */
const SLOW_TIME: PassingTime = {
  now: () => SYSTEM_CLOCK.now().getTime(),
  sleep: (durationMs, signal) => sleep(5 * durationMs, signal),
  random: Math.random,
};

describe('kill -9 of PostgreSQL during writes', () => {
  let postgresql: Awaited<ReturnType<typeof startPrivatePostgresql>>;
  let service: SettingsFixture;

  beforeAll(async () => {
    postgresql = await startPrivatePostgresql();
    service = await startSettings({ replicas: 2, server: postgresql.server.url });
  }, 120_000);
  afterAll(async () => {
    await service.close();
    await postgresql.stop();
  }, 60_000);

  const urlOf = (writer: number): string => service.urls[writer % 2] ?? '';
  const historyOf = (subsystem: string): Promise<Entry[]> =>
    service.database.query<Entry & object>(
      `SELECT setting_key AS key, array_agg(value_text ORDER BY history_id) AS values
         FROM settings.setting_history WHERE subsystem_key = $1 GROUP BY setting_key`,
      [subsystem],
    );
  const settingsOf = (subsystem: string) =>
    service.database.query<{ key: string; value: string }>(
      'SELECT setting_key AS key, value_text AS value FROM settings.setting WHERE subsystem_key = $1',
      [subsystem],
    );

  /**
   * Crashes the server repeatedly while `written()` grows, and then waits until it grows again. The service
   * is not restarted.
   */
  async function crashDuring(written: () => number): Promise<void> {
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = written();
      await eventually(() => expect(written()).toBeGreaterThan(before + 5 * WRITERS), { timeoutMs: 60_000 });
      await postgresql.server.crash();
      await postgresql.server.start();
    }
    const before = written();
    await eventually(() => expect(written()).toBeGreaterThan(before + 5 * WRITERS), { timeoutMs: 60_000 });
  }

  it('loses no acknowledged write and no history entry, and the service recovers by itself', async () => {
    const acknowledged = Array.from({ length: WRITERS }, () => new Set<string>());
    const refusals: number[] = [];
    let isDone = false;
    const write = async (writer: number): Promise<void> => {
      const url = `${urlOf(writer)}${settingPath('Crash', `writer ${String(writer)}`)}`;
      for (let value = 1; !isDone; value += 1) {
        const headers = { ...PARTNER, 'content-type': 'application/json' };
        const body = `{"settingValue":${String(value)}}`;
        const answer = await fetch(url, { method: 'PUT', headers, body });
        await answer.arrayBuffer();
        if (answer.status === 200) acknowledged[writer]?.add(String(value));
        else refusals.push(answer.status);
      }
    };
    const writing = Promise.all(acknowledged.map((_, writer) => write(writer)));
    await crashDuring(() => acknowledged.reduce((sum, { size }) => sum + size, 0));
    isDone = true;
    await writing;

    // During the outage every refused write must be a 503.
    expect(refusals.filter((status) => status !== 503)).toEqual([]);
    const history = new Map((await historyOf('crash')).map(({ key, values }) => [key, values]));
    const current = new Map((await settingsOf('crash')).map(({ key, value }) => [key, value]));
    for (const [writer, values] of acknowledged.entries()) {
      const kept = history.get(`writer ${String(writer)}`) ?? [];
      // A refused write may still have been committed. Only acknowledged writes are guaranteed, and none may
      // happen twice.
      expect([...values].filter((value) => !kept.includes(value))).toEqual([]);
      expect(kept).toEqual([...new Set(kept)].sort((a, b) => Number(a) - Number(b)));
      expect(current.get(`writer ${String(writer)}`)).toBe(kept.at(-1));
    }
    for (const [index, url] of service.urls.entries()) {
      expect((await fetch(`${url}/health/ready`)).status).toBe(200);
      const path = settingPath('Crash', `writer ${String(index)}`);
      expect((await fetch(`${url}${path}/value`, { headers: CUSTOMER })).status).toBe(200);
    }
  }, 240_000);

  it('lets the client retry each write until it succeeds, exactly once', async () => {
    const written = Array.from({ length: WRITERS }, () => [] as string[]);
    let isDone = false;
    const write = async (writer: number): Promise<void> => {
      const options = { baseUrl: urlOf(writer), token: testAccessToken({ personas: 1 }), time: SLOW_TIME };
      const client = new SettingsClient(options);
      for (let value = 1; !isDone; value += 1) {
        await client.putSetting('Repeated', `writer ${String(writer)}`, value);
        written[writer]?.push(String(value));
      }
    };
    const writing = Promise.all(written.map((_, writer) => write(writer)));
    await crashDuring(() => written.reduce((sum, { length }) => sum + length, 0));
    isDone = true;
    await writing;
    const history = await historyOf('repeated');
    expect(Object.fromEntries(history.map(({ key, values }) => [key, values]))).toEqual(
      Object.fromEntries(written.map((values, writer) => [`writer ${String(writer)}`, values])),
    );
  }, 240_000);
});
