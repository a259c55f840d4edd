import { eventually } from '@platform/testing';
import { Client } from 'pg';
import { PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

interface Entry {
  settingName: string;
  occurredAt: string;
}

/** Inserts an entry as the service does, for a transaction that a test holds open. */
const INSERT = `INSERT INTO settings.setting_history
  (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id)
  VALUES ($1, $2, $1, $2, 'write', '"late"', 1, 1, 'test') RETURNING occurred_at AS at`;

describe('timestamps of changes', () => {
  let service: SettingsFixture;
  const clients: Client[] = [];
  beforeAll(async () => {
    service = await startSettings({ replicas: 2 });
  });
  afterEach(() => Promise.all(clients.splice(0).map((client) => client.end())));
  afterAll(() => service.close());

  /** Opens a connection with the service's own role. */
  async function writer(): Promise<Client> {
    const client = new Client({ connectionString: service.environment['DATABASE_URL'] });
    await client.connect();
    clients.push(client);
    return client;
  }

  const url = (replica: number, path: string): string => `${service.urls[replica]}${path}`;
  const get = async (path: string, replica = 0) => {
    const response = await fetch(url(replica, path), { headers: PARTNER });
    return { status: response.status, headers: response.headers, body: (await response.json()) as never };
  };
  const write = async (writes: object[], replica = 0): Promise<void> => {
    const response = await fetch(url(replica, '/platform/v1/commands/write'), {
      method: 'POST',
      headers: { ...PARTNER, 'content-type': 'application/json' },
      body: JSON.stringify({ writes }),
    });
    expect(response.status).toBe(200);
  };
  const instantsOf = async (subsystem: string): Promise<string[]> => {
    const rows = await service.database.query<{ at: string }>(
      'SELECT DISTINCT occurred_at::text AS at FROM settings.setting_history WHERE subsystem_key = $1 ORDER BY 1',
      [subsystem],
    );
    return rows.map(({ at }) => at);
  };
  const databaseNow = async (): Promise<Date> =>
    (await service.database.query<{ now: Date }>('SELECT clock_timestamp() AS now'))[0]!.now;
  const listAt = (subsystem: string, at: Date, replica = 0) =>
    get(`/platform/v1/subsystems/${subsystem}/settings?pageSize=1000&at=${at.toISOString()}`, replica);

  it('are the same for all writes of a transaction, so that no instant shows part of it', async () => {
    const names = Array.from({ length: 50 }, (_, n) => `n${String(n).padStart(2, '0')}`);
    const [old, fresh] = [names.map((name) => `a${name}`), names.map((name) => `b${name}`)];
    const put = (settingName: string) => ({ subsystemName: 'torn', settingName, settingValue: 1 });
    await write(old.map(put));
    const before = await databaseNow();
    await write([
      ...old.map((settingName) => ({ subsystemName: 'torn', settingName, delete: true })),
      ...fresh.map(put),
    ]);
    const after = await databaseNow();
    expect(await instantsOf('torn')).toHaveLength(2);
    for (let ms = before.getTime() - 1; ms <= after.getTime() + 1; ms += 1) {
      const { body, status } = await listAt('torn', new Date(ms));
      expect(status).toBe(200);
      const found = (body as { settings: Entry[] }).settings.map(({ settingName }) => settingName);
      expect([[], old, fresh]).toContainEqual(found);
    }
  });

  it('are the same for all writes of a restoration, and set after every row is locked', async () => {
    const put = (settingName: string, settingValue: number) => ({
      subsystemName: 'back',
      settingName,
      settingValue,
    });
    const names = Array.from({ length: 100 }, (_, n) => `n${String(n).padStart(2, '0')}`);
    await write(names.map((name) => put(name, 1)));
    const at = await databaseNow();
    await write(names.map((name) => put(name, 2)));
    const other = await writer();
    await other.query('BEGIN');
    await other.query(`SELECT FROM settings.setting WHERE setting_key = 'n50' FOR UPDATE`);
    const restoring = fetch(url(0, '/platform/v1/subsystems/back/commands/restore'), {
      method: 'POST',
      headers: { ...PARTNER, 'content-type': 'application/json' },
      body: JSON.stringify({ at: at.toISOString() }),
    });
    await eventually(async () => {
      const [row] = await service.database.query<{ waiting: number }>(
        'SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted',
      );
      expect(row?.waiting).toBeGreaterThan(0);
    });
    const lockedUntil = await databaseNow();
    await other.query('COMMIT');
    expect((await restoring).status).toBe(200);
    const instants = await instantsOf('back');
    expect(instants).toHaveLength(3);
    expect(Date.parse(instants[2]!)).toBeGreaterThanOrEqual(lockedUntil.getTime());
  });

  it.each([0, 1])(
    'delay reads of the past at replica %d while a transaction that has one is open',
    async (replica) => {
      const subsystem = `held${String(replica)}`;
      const late = await writer();
      await late.query('BEGIN');
      const { rows } = await late.query<{ at: Date }>(INSERT, [subsystem, 'late']);
      const { at } = rows[0]!;
      let isAnswered = false;
      const reading = listAt(subsystem, new Date(at.getTime() + 1), replica).finally(
        () => (isAnswered = true),
      );
      // Reads of earlier instants, and reads and writes of current values, do not wait.
      expect((await listAt(subsystem, new Date(at.getTime() - 2_000), replica)).status).toBe(200);
      await write([{ subsystemName: 'meanwhile', settingName: 'x', settingValue: replica }], replica);
      expect(isAnswered).toBe(false);
      await late.query('COMMIT');
      const { body, status } = await reading;
      expect([status, (body as { settings: Entry[] }).settings]).toEqual([
        200,
        [expect.objectContaining({ settingName: 'late' })],
      ]);
    },
  );

  it('end in a 503 if the transaction stays open, for reads, lists, the history and restorations', async () => {
    const late = await writer();
    await late.query('BEGIN');
    const { rows } = await late.query<{ at: Date }>(INSERT, ['stuck', 'late']);
    const at = new Date(rows[0]!.at.getTime() + 1).toISOString();
    const path = settingPath('stuck', 'late');
    const answers = await Promise.all([
      get(`${path}?at=${at}`),
      get(`${path}/value?at=${at}`, 1),
      get(`/platform/v1/subsystems/stuck/settings?at=${at}`),
      get(`/platform/v1/history?subsystem=stuck&to=${at}`, 1),
      get('/platform/v1/history'),
      fetch(url(0, '/platform/v1/subsystems/stuck/commands/restore'), {
        method: 'POST',
        headers: { ...PARTNER, 'content-type': 'application/json' },
        body: JSON.stringify({ at, dryRun: true }),
      }).then(async (response) => ({
        ...response,
        status: response.status,
        headers: response.headers,
        body: (await response.json()) as never,
      })),
    ]);
    for (const { status, headers, body } of answers) {
      expect([status, (body as { type: string }).type]).toEqual([
        503,
        'urn:platform:problem:instant-not-settled',
      ]);
      expect(headers.get('retry-after')).toBe('1');
    }
    await late.query('ROLLBACK');
    expect((await get(`${path}?at=${at}`)).status).toBe(404);
  }, 30_000);

  it('in the future are refused', async () => {
    const at = new Date((await databaseNow()).getTime() + 60_000).toISOString();
    for (const path of [settingPath('none', 'none'), '/platform/v1/subsystems/none/settings']) {
      const { status, body } = await get(`${path}?at=${at}`);
      expect([status, (body as { type: string }).type]).toEqual([
        400,
        'urn:platform:problem:instant-in-future',
      ]);
    }
    // A history list may end in the future: it returns the entries up to now.
    expect((await get(`/platform/v1/history?to=${at}`)).status).toBe(200);
  });

  it('are never before a past that was already served, whatever the clock does', async () => {
    await write([{ subsystemName: 'told', settingName: 'x', settingValue: 'v0' }]);
    const at = await databaseNow();
    const before = await listAt('told', at);
    expect(before.body).toMatchObject({ settings: [{ settingValue: 'v0' }] });
    const [kept] = await service.database.query<{ ms: string }>(
      'SELECT last_value AS ms FROM settings.settled_ms',
    );
    expect(Number(kept!.ms)).toBeGreaterThan(at.getTime());
    // Simulates a clock that was set back: the settled time is ahead of it. The second call, by a slower
    // replica, must not lower it.
    const aheadMs = (await databaseNow()).getTime() + 2_000;
    const settling = await writer();
    await settling.query('SELECT settings.settle($1), settings.settle($2)', [aheadMs, at.getTime()]);
    await write([{ subsystemName: 'told', settingName: 'x', settingValue: 'v1' }], 1);
    const [, later] = await instantsOf('told');
    expect(Date.parse(later!)).toBeGreaterThanOrEqual(aheadMs);
    for (const ms of [at.getTime(), aheadMs - 1])
      expect(await listAt('told', new Date(ms))).toMatchObject({ status: 200, body: before.body });
  });

  it('never go back when the clock does', async () => {
    await service.database.query(
      `INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id, occurred_at)
       VALUES ('clock', 'ahead', 'clock', 'ahead', 'write', '1', 1, 1, 'test', clock_timestamp() + interval '3 s')`,
    );
    await write([{ subsystemName: 'clock', settingName: 'after', settingValue: 1 }]);
    const { body } = await get('/platform/v1/history?subsystem=clock');
    expect((body as { history: Entry[] }).history.map(({ settingName }) => settingName)).toEqual([
      'after',
      'ahead',
    ]);
    expect(await instantsOf('clock')).toHaveLength(1);
  });

  it('find past values, even if a long transaction drew its identifier among later ones', async () => {
    await service.database.query(
      `INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id, occurred_at)
       SELECT 'long', k, 'long', k, 'write', v, 1, 1, 'test', t::timestamptz FROM (
         SELECT 'n' || n AS k, '2' AS v, '2026-01-02Z' AS t FROM generate_series(1, 200) AS n
         UNION ALL SELECT 'slow', '1', '2026-01-01Z') AS entry`,
    );
    const { body } = await listAt('long', new Date('2026-01-03T00:00:00Z'));
    expect((body as { settings: unknown[] }).settings).toHaveLength(201);
  });

  describe('with a slow database', () => {
    // Each transaction stays open for 30 ms after it has set its timestamp.
    beforeAll(() =>
      service.database
        .query(`CREATE FUNCTION settings.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.03); RETURN NULL; END';
        CREATE TRIGGER slow AFTER INSERT ON settings.setting_history EXECUTE FUNCTION settings.slow()`),
    );
    afterAll(() => service.database.query('DROP FUNCTION settings.slow CASCADE'));

    it('give repeatable reads as soon as 2 ms after an instant, at both replicas', async () => {
      let isDone = false;
      const writers = [0, 1, 2, 3].map(async (n) => {
        for (let count = 0; !isDone; count += 1)
          await write(
            ['x', 'y'].map((name) => ({
              subsystemName: 'slow',
              settingName: `${name}${String(n)}`,
              settingValue: count,
            })),
            n % 2,
          );
      });
      const seen: { at: Date; text: string }[] = [];
      for (let count = 0; count < 30; count += 1) {
        const at = new Date((await databaseNow()).getTime() - 2);
        const { status, body } = await listAt('slow', at, count % 2);
        expect(status).toBe(200);
        seen.push({ at, text: JSON.stringify(body) });
      }
      isDone = true;
      await Promise.all(writers);
      for (const { at, text } of seen) expect(JSON.stringify((await listAt('slow', at)).body)).toBe(text);
      for (const { text } of seen) {
        const { settings } = JSON.parse(text) as {
          settings: { settingName: string; settingValue: number }[];
        };
        const values = Object.fromEntries(
          settings.map(({ settingName, settingValue }) => [settingName, settingValue]),
        );
        for (const n of [0, 1, 2, 3]) expect(values[`x${String(n)}`]).toBe(values[`y${String(n)}`]);
      }
    }, 60_000);
  });
});
