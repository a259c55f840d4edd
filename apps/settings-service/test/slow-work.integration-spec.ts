import { CLOCK, Metrics } from '@platform/service-defaults';
import { bearer, eventually } from '@platform/testing';
import type { Clock } from '@platform/time';
import { Client } from 'pg';
import { CUSTOMER, PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

const OTHER = bearer({
  sub: 'userid:9002',
  identityType: 'internal-legacy',
  userId: 9002,
  personId: undefined,
  name: 'Otto',
  personas: 1,
});
const POOL = 8;
const MANY = 24;

describe('slow work leaves connections for others:', () => {
  let service: SettingsFixture;
  let holder: Client;
  beforeAll(async () => {
    service = await startSettings({ variables: { DATABASE_POOL_SIZE: String(POOL) } });
    holder = new Client({ connectionString: service.database.ownerUrl });
    await holder.connect();
  });
  afterEach(() => holder.query('ROLLBACK'));
  afterAll(async () => {
    await holder.end();
    await service.close();
  });

  const names = Array.from({ length: MANY }, (_, n) => `n${String(n)}`);
  const send = async (method: string, path: string, body?: object, headers: object = PARTNER) => {
    const json = { headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const request = body === undefined ? { method, headers: { ...headers } } : { method, ...json };
    const response = await fetch(`${service.urls[0]}${path}`, request);
    const { type } = (await response.json()) as { type?: string };
    return { status: response.status, type, retryAfter: response.headers.get('retry-after') };
  };
  const put = (setting: string, headers: object = PARTNER) =>
    send('PUT', settingPath('busy', setting), { settingValue: 1 }, headers);
  const expectOthersServed = async (): Promise<void> => {
    const others = await Promise.all([
      ...names.map(() => send('GET', settingPath('busy', 'free'), undefined, CUSTOMER)),
      send('GET', '/health/ready'),
    ]);
    expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
  };
  const lockWaits = async (): Promise<number> => {
    const [row] = await service.database.querySuperuser<{ waiting: number }>(
      `SELECT count(*)::int AS waiting FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return row!.waiting;
  };

  const lock = async (client: Client, setting: string): Promise<void> => {
    await client.query('BEGIN');
    await client.query('SELECT FROM settings.setting WHERE setting_key = $1 FOR UPDATE', [setting]);
  };
  const lockWaitTurns = async (state: 'running' | 'waiting'): Promise<number> => {
    const { registry } = service.replicas[0]!.get(Metrics);
    const text = await registry.getSingleMetricAsString('settings_slow_work');
    const line = text.split('\n').find((each) => each.includes(`kind="lock-wait",state="${state}"`));
    return Number(line?.split(' ').at(-1));
  };
  /** Writes that wait for a slot. They hold no connection. */
  const waitingForTurns = () => lockWaitTurns('waiting');

  it('restorations and their dry runs are limited per caller and in total', async () => {
    expect((await put('free')).status).toBe(200);
    await holder.query('BEGIN');
    // Reads of current values do not use the history, so they are not blocked.
    await holder.query('LOCK TABLE settings.setting_history IN ACCESS EXCLUSIVE MODE');
    const restore = (headers: object) =>
      send(
        'POST',
        '/platform/v1/subsystems/busy/commands/restore',
        { at: '2026-01-01T00:00:00Z', dryRun: true },
        headers,
      );
    const ofOne = names.map(() => restore(PARTNER));
    await eventually(async () => expect(await lockWaits()).toBe(1));
    const ofOther = restore(OTHER);
    await eventually(async () => expect(await lockWaits()).toBe(2));
    await expectOthersServed();
    expect(await lockWaits()).toBe(2);
    await holder.query('ROLLBACK');
    expect(await ofOther).toMatchObject({ status: 200 });
    const answers = await Promise.all(ofOne);
    const refused = answers.filter(({ status }) => status !== 200);
    // One runs and two are queued; the others are refused.
    expect(refused).toEqual(
      Array.from({ length: MANY - 3 }, () => ({
        status: 429,
        type: 'urn:platform:problem:too-many-restorations',
        retryAfter: '5',
      })),
    );
  });

  it.each([
    ['puts', (name: string) => put(name)],
    ['conditional puts', (name: string) => put(name, { ...PARTNER, 'if-match': '*' })],
    ['deletions', (name: string) => send('DELETE', settingPath('busy', name))],
    [
      'writes of many',
      (name: string) =>
        send('POST', '/platform/v1/commands/write', {
          writes: [{ subsystemName: 'busy', settingName: name, settingValue: 1 }],
        }),
    ],
  ])(
    '%s of locked settings wait briefly, with at most a quarter of the connections',
    async (_what, write) => {
      await Promise.all(['free', 'other', ...names].map((name) => put(name)));
      await holder.query('BEGIN');
      await holder.query('SELECT FROM settings.setting WHERE setting_key = ANY ($1) FOR UPDATE', [names]);
      const writing = Promise.all(names.map(write));
      await eventually(async () => expect(await lockWaits()).toBe(1));
      await expectOthersServed();
      expect((await put('other', OTHER)).status).toBe(200);
      expect(await lockWaits()).toBeLessThanOrEqual(POOL / 4);
      const answers = await writing;
      expect(answers).toEqual(
        names.map(() => ({ status: 503, type: 'urn:platform:problem:setting-busy', retryAfter: '1' })),
      );
      await holder.query('ROLLBACK');
      expect((await put('n0')).status).toBe(200);
    },
  );

  it('a write that waits for its turn does not block other callers from its setting', async () => {
    const otherHolder = new Client({ connectionString: service.database.ownerUrl });
    await otherHolder.connect();
    try {
      await Promise.all([put('locked'), put('shared')]);
      await lock(holder, 'locked');
      await lock(otherHolder, 'shared');
      const settled: string[] = [];
      const note = (name: string) => () => settled.push(name);
      // This uses up the caller's limit of concurrent lock waits.
      const ofLocked = put('locked').finally(note('locked'));
      await eventually(async () => expect(await lockWaits()).toBe(1));
      const ofShared = put('shared').finally(note('shared'));
      await eventually(async () => expect(await waitingForTurns()).toBe(1));
      await otherHolder.query('ROLLBACK');
      expect((await put('shared', OTHER)).status).toBe(200);
      expect(settled).toEqual([]);
      expect((await ofShared).status).toBe(200);
      expect((await ofLocked).status).toBe(503);
    } finally {
      await otherHolder.end();
    }
  });

  it('a write whose turn has come is done before the writes queued for its setting', async () => {
    const otherHolder = new Client({ connectionString: service.database.ownerUrl });
    await otherHolder.connect();
    try {
      await Promise.all([put('locked'), put('shared')]);
      await lock(holder, 'locked');
      await lock(otherHolder, 'shared');
      const ofLocked = put('locked');
      await eventually(async () => expect(await lockWaitTurns('running')).toBe(1));
      const settled: string[] = [];
      const ofShared = put('shared').finally(() => settled.push('first'));
      await eventually(async () => expect(await waitingForTurns()).toBe(1));
      const later = [put('shared', OTHER)];
      await eventually(async () => expect(await lockWaitTurns('running')).toBe(2));
      for (let count = 0; count < 50; count += 1)
        later.push(put('shared', OTHER).finally(() => settled.push('later')));
      expect((await send('GET', settingPath('busy', 'shared'))).status).toBe(200);
      await holder.query('ROLLBACK');
      await ofLocked;
      await otherHolder.query('ROLLBACK');
      expect((await ofShared).status).toBe(200);
      await Promise.all(later);
      expect(settled.indexOf('first')).toBeLessThan(15);
    } finally {
      await otherHolder.end();
    }
  });

  it('a write whose turn comes after eight seconds is not attempted', async () => {
    await Promise.all([put('locked'), put('shared')]);
    await holder.query('BEGIN');
    await holder.query(`SELECT FROM settings.setting WHERE setting_key IN ('locked', 'shared') FOR UPDATE`);
    const ofLocked = put('locked');
    await eventually(async () => expect(await lockWaitTurns('running')).toBe(1));
    const ofShared = put('shared');
    await eventually(async () => expect(await waitingForTurns()).toBe(1));
    const later = jest
      .spyOn(service.replicas[0]!.get<Clock>(CLOCK), 'monotonicMs')
      .mockImplementation(() => performance.now() + 8_000);
    try {
      await holder.query('ROLLBACK');
      expect((await ofLocked).status).toBe(200);
      expect((await ofShared).status).toBe(503);
    } finally {
      later.mockRestore();
    }
  });

  it('a restoration waits briefly for a locked setting, and then releases the other locks', async () => {
    await Promise.all(['free', ...names].map((name) => put(name)));
    await holder.query('BEGIN');
    await holder.query(`SELECT FROM settings.setting WHERE setting_key = 'n7' FOR UPDATE`);
    const body = { at: '2026-01-01T00:00:00Z' };
    expect(await send('POST', '/platform/v1/subsystems/busy/commands/restore', body)).toEqual({
      status: 503,
      type: 'urn:platform:problem:setting-busy',
      retryAfter: '1',
    });
    expect((await put('n1')).status).toBe(200);
  });
});
