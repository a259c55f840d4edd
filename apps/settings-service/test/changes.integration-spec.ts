import { Metrics, ShutdownRegistry, SignedCursor } from '@platform/service-defaults';
import { eventually, testAccessToken } from '@platform/testing';
import { Client } from 'pg';
import { CUSTOMER, OWNER, PARTNER, RESIDENT, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

const PATH = '/platform/v1/changes';

interface Page {
  changes: {
    subsystemName: string;
    settingName: string;
    operation: string;
    etag: string | null;
    changedAt: string;
  }[];
  next: string;
}

describe('the change feed', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings({ replicas: 2, variables: { CHANGES_MAX_WATCHERS: '5' } });
  });
  afterAll(() => service.close());

  const ask = async (query: Record<string, string>, replica = 0, init: RequestInit = {}): Promise<Page> => {
    const url = `${service.urls[replica]}${PATH}?${new URLSearchParams(query).toString()}`;
    const response = await fetch(url, { headers: 'subsystem' in query ? CUSTOMER : PARTNER, ...init });
    expect([await response.clone().text(), response.status]).toEqual([expect.any(String), 200]);
    return (await response.json()) as Page;
  };
  const now = async (query = {}): Promise<string> => (await ask(query)).next;
  const put = async (subsystem: string, name: string, value: unknown = 1, replica = 0): Promise<string> => {
    const response = await fetch(`${service.urls[replica]}${settingPath(subsystem, name)}`, {
      method: 'PUT',
      headers: { ...PARTNER, 'content-type': 'application/json' },
      body: JSON.stringify({ settingValue: value }),
    });
    expect(response.status).toBe(200);
    return response.headers.get('etag')!;
  };
  const remove = (subsystem: string, name: string) =>
    service.api.delete(settingPath(subsystem, name)).set(PARTNER).expect(200);
  /**
   * Reads pages until `count` changes have arrived. Each page continues where the last one ended, at the
   * other replica.
   */
  const follow = async (after: string, count: number): Promise<Page['changes']> => {
    const changes: Page['changes'] = [];
    for (let replica = 0; changes.length < count; replica = 1 - replica) {
      const page = await ask({ after, waitSeconds: '10' }, replica);
      changes.push(...page.changes);
      after = page.next;
    }
    return changes;
  };
  const database = async (): Promise<Client> => {
    const client = new Client({ connectionString: service.database.ownerUrl });
    await client.connect();
    return client;
  };
  const isWaiting = (replica = 0) =>
    eventually(async () => expect(await watchersOf(service, replica)).toBeGreaterThan(0));

  it('delivers writes and deletes in order, with ETags, at every replica', async () => {
    const after = await now();
    const first = await put('Feed', 'One', 1, 0);
    const second = await put('Feed', 'One', 2, 1);
    await remove('Feed', 'One');
    const changes = await follow(after, 3);
    expect(changes.map(({ operation, etag }) => [operation, etag])).toEqual([
      ['write', first],
      ['write', second],
      ['delete', null],
    ]);
    expect(changes[0]).toMatchObject({ subsystemName: 'Feed', settingName: 'One' });
    expect(Date.now() - Date.parse(changes[0]!.changedAt)).toBeLessThan(60_000);
    expect(await ask({ after }, 1)).toMatchObject({ changes });
  });

  it.each([0, 1])('ends a wait at replica %d within a second of a write at the first', async (replica) => {
    const after = await now();
    const waiting = ask({ after, waitSeconds: '30' }, replica);
    await isWaiting(replica);
    await put('Feed', `woken ${String(replica)}`);
    const writtenAt = Date.now();
    expect((await waiting).changes.map(({ settingName }) => settingName)).toEqual([
      `woken ${String(replica)}`,
    ]);
    expect(Date.now() - writtenAt).toBeLessThan(1_000);
  });

  it('delivers only one subsystem, whatever the case of its name, and binds the cursor to it', async () => {
    const after = await now({ subsystem: 'FEED' });
    const waiting = ask({ after, subsystem: 'feed', waitSeconds: '30' });
    await isWaiting();
    await put('Another', 'one');
    await put('Feed', 'mine');
    expect((await waiting).changes.map(({ settingName }) => settingName)).toEqual(['mine']);
    const { body } = await service.api.get(PATH).query({ after }).set(PARTNER).expect(400);
    expect(body.errors).toEqual({ after: ['is not valid'] });
  });

  it('responds with no changes when the wait is over, and continues from there', async () => {
    const { changes, next } = await ask({ waitSeconds: '1' });
    expect(changes).toEqual([]);
    await put('Feed', 'later');
    expect((await ask({ after: next, waitSeconds: '30' })).changes).toHaveLength(1);
  });

  it('delivers a late commit, despite an old transaction elsewhere that never ends', async () => {
    const [foreign, late] = [await database(), await database()];
    try {
      await foreign.query('BEGIN');
      await foreign.query('SELECT pg_current_xact_id()');
      await put('Late', 'seen');
      const after = await now();
      // Runs the statement of the service in a transaction that stays open.
      await late.query('BEGIN');
      await late.query(
        `INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id)
         VALUES ('late', 'late', 'Late', 'late', 'write', '1', 1, 1, 'test')`,
      );
      await put('Late', 'early');
      const { changes, next } = await ask({ after, waitSeconds: '30' });
      expect(changes.map(({ settingName }) => settingName)).toEqual(['early']);
      // Waits long enough for polls to include the writers, which they do once gaps stay open.
      expect((await ask({ after: next, waitSeconds: '2' })).changes).toEqual([]);
      const waiting = ask({ after: next, waitSeconds: '30' }, 1);
      await late.query('COMMIT');
      expect((await waiting).changes.map(({ settingName }) => settingName)).toEqual(['late']);
    } finally {
      await Promise.all([foreign.end(), late.end()]);
    }
  });

  it('settles the gap that a failed write leaves, despite an old transaction elsewhere', async () => {
    const [foreign, failing] = [await database(), await database()];
    try {
      await foreign.query('BEGIN');
      await foreign.query('SELECT pg_current_xact_id()');
      await failing.query(`SELECT nextval('settings.setting_history_history_id_seq')`);
      await put('Gap', 'after');
      const cursors = service.replicas[0]!.get(SignedCursor);
      await eventually(
        async () => {
          const [, , ...open] = cursors.decode('changes', (await ask({ waitSeconds: '1' })).next);
          expect(open).toEqual([]);
        },
        { timeoutMs: 10_000 },
      );
    } finally {
      await Promise.all([foreign.end(), failing.end()]);
    }
  });

  it('delivers everything to a reader that is far behind, page by page', async () => {
    const after = await now();
    const ofRare = await now({ subsystem: 'Rare' });
    // More than a replica retains in memory, so the beginning is read from the history.
    const names = Array.from({ length: 22_500 }, (_, index) => `many ${String(index)}`);
    await service.database.query(
      `INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id)
       SELECT 'many', name, 'Many', name, 'write', '1', 1, 1, 'test' FROM unnest($1::text[]) AS name`,
      [names],
    );
    await put('Rare', 'last');
    const { changes } = await ask({ after: ofRare, subsystem: 'Rare' });
    expect(changes.map(({ settingName }) => settingName)).toEqual(['last']);
    const all = (await follow(after, names.length + 1)).map(({ settingName }) => settingName);
    expect(all).toEqual([...names, 'last']);
  });

  it('refuses more watchers than are allowed with 503, and has room again after they disconnect', async () => {
    const after = await now();
    const gone = new AbortController();
    const watchers = Array.from({ length: 5 }, () =>
      ask({ after, waitSeconds: '30' }, 0, { signal: gone.signal }),
    );
    const ended = Promise.allSettled(watchers);
    await eventually(async () => expect(await watchersOf(service, 0)).toBe(5));
    const refused = await service.api.get(PATH).query({ after, waitSeconds: '30' }).set(PARTNER).expect(503);
    expect(refused.body.type).toBe('urn:platform:problem:too-many-watchers');
    expect(refused.headers['retry-after']).toBe('1');
    await service.api.get(PATH).query({ after }).set(PARTNER).expect(200);
    gone.abort();
    await ended;
    await eventually(async () => expect(await watchersOf(service, 0)).toBe(0));
  });

  it('delivers nothing to a watcher whose token was revoked during its wait', async () => {
    const jti = 'a-token-that-is-revoked-while-it-waits';
    const headers = { authorization: `Bearer ${testAccessToken({ personas: 1, jti })}` };
    const after = await now();
    const url = `${service.urls[0]}${PATH}?${new URLSearchParams({ after, waitSeconds: '30' }).toString()}`;
    const waiting = fetch(url, { headers });
    await isWaiting();
    service.auth.revocations.push({
      domain: 'jti',
      identifier: jti,
      revocationDate: new Date().toISOString(),
    });
    await eventually(async () => {
      const response = await fetch(`${service.urls[0]}${PATH}`, { headers });
      expect(response.status).toBe(401);
    });
    await put('Feed', 'secret');
    expect((await waiting).status).toBe(401);
  });

  it.each([
    ['a forged cursor', { after: 'x' }],
    ['an empty cursor', { after: '' }],
    ['too long a wait', { waitSeconds: '31' }],
    ['a wait in words', { waitSeconds: 'long' }],
    ['a name that no subsystem can have', { subsystem: '\u0007' }],
  ])('refuses %s with 400', async (_case, query) => {
    await service.api
      .get(PATH)
      .query({ subsystem: 'feed', ...query })
      .set(CUSTOMER)
      .expect(400);
  });

  it('requires the personas of the list: readers for one subsystem, InternalPartner for all', async () => {
    await service.api.get(PATH).expect(401);
    for (const caller of [RESIDENT, CUSTOMER, OWNER]) await service.api.get(PATH).set(caller).expect(403);
    await service.api.get(PATH).set(PARTNER).expect(200);
    const ofOne = (caller: Record<string, string>) =>
      service.api.get(PATH).query({ subsystem: 'feed' }).set(caller);
    await ofOne(RESIDENT).expect(403);
    for (const caller of [CUSTOMER, OWNER, PARTNER]) await ofOne(caller).expect(200);
  });

  it('keeps one caller or one application from taking every place', async () => {
    const wait = (claims: Record<string, unknown>, signal: AbortSignal) => {
      const query = new URLSearchParams({ subsystem: 'shares', waitSeconds: '30' }).toString();
      const headers = { authorization: `Bearer ${testAccessToken({ personas: 2, ...claims })}` };
      return fetch(`${service.urls[0]}${PATH}?${query}`, { headers, signal });
    };
    const gone = new AbortController();
    const hog = { sub: 'personid:66', client_id: 'hog' };
    const hogs = Array.from({ length: 5 }, () => wait(hog, gone.signal));
    await eventually(async () => expect(await watchersOf(service, 0)).toBe(5));
    expect((await wait(hog, gone.signal)).status).toBe(503);
    const others = [1, 2].map((n) => wait({ sub: `personid:${String(n)}`, client_id: 'quiet' }, gone.signal));
    // The others get places: two of the hog's waits end with no changes.
    const ended = [await Promise.race(hogs.map(async (each) => ({ each, response: await each })))];
    expect([ended[0]!.response.status, (await ended[0]!.response.json()) as Page]).toMatchObject([
      200,
      { changes: [] },
    ]);
    others.push(wait({ sub: 'personid:67', client_id: 'hog' }, gone.signal));
    await eventually(async () => {
      const text = await service.replicas[0]!.get(Metrics).registry.metrics();
      expect(text).toMatch(/^settings_change_watchers_displaced_total 3/m);
    });
    await put('Shares', 'told');
    for (const other of others)
      expect(((await (await other).json()) as Page).changes.map(({ settingName }) => settingName)).toEqual([
        'told',
      ]);
    gone.abort();
    await Promise.allSettled(hogs);
    const text = await service.replicas[0]!.get(Metrics).registry.metrics();
    expect(text).toMatch(/^settings_change_watchers_refused_total [1-9]/m);
    await eventually(async () => expect(await watchersOf(service, 0)).toBe(0));
  });

  it('responds at once to all waiting requests when the service stops', async () => {
    const after = await now();
    const waiting = ask({ after, waitSeconds: '30' }, 1);
    await isWaiting(1);
    const startedAt = Date.now();
    for (const hook of service.replicas[1]!.get(ShutdownRegistry).drainHooks) await hook.drain();
    expect((await waiting).changes).toEqual([]);
    expect(Date.now() - startedAt).toBeLessThan(1_000);
    expect((await ask({ after, waitSeconds: '30' }, 1)).changes).toEqual([]);
  });
});

describe('a history that went back', () => {
  let service: SettingsFixture;
  beforeEach(async () => {
    service = await startSettings({ replicas: 2 });
  });
  afterEach(() => service.close());

  const put = (name: string, value: unknown = 1) =>
    service.api.put(settingPath('Old', name)).set(PARTNER).send({ settingValue: value }).expect(200);
  const ask = (query: Record<string, string>, replica = 0) =>
    fetch(`${service.urls[replica]}${PATH}?${new URLSearchParams(query).toString()}`, { headers: PARTNER });
  const now = async (): Promise<string> => ((await (await ask({})).json()) as Page).next;
  /** Simulates a failover that loses the last commits: sets rows and sequences back. */
  const lose = (count: number) =>
    service.database.query(`
      WITH lost AS (DELETE FROM settings.setting_history WHERE history_id IN
             (SELECT history_id FROM settings.setting_history ORDER BY history_id DESC LIMIT ${String(count)})
           RETURNING subsystem_key, setting_key),
           gone AS (DELETE FROM settings.setting AS s USING lost WHERE s.subsystem_key = lost.subsystem_key AND s.setting_key = lost.setting_key)
      SELECT setval('settings.setting_history_history_id_seq', (SELECT max(history_id) FROM settings.setting_history) - ${String(count)}),
             setval('settings.setting_revision', greatest(1, (SELECT last_value FROM settings.setting_revision) - ${String(count)}))`);
  const expectExpired = async (response: Response): Promise<void> => {
    expect([response.status, await response.json()]).toMatchObject([
      410,
      { type: 'urn:platform:problem:changes-expired', detail: expect.stringContaining('without `after`') },
    ]);
  };

  it('ends waits with 410, and expires earlier cursors, whichever replica issued them', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await put(name);
    const tokens = [await now(), ((await (await ask({}, 1)).json()) as Page).next];
    const waiting = ask({ after: tokens[0]!, waitSeconds: '30' });
    await eventually(async () => expect(await watchersOf(service, 0)).toBe(1));
    await lose(2);
    await expectExpired(await waiting);
    for (const after of tokens)
      for (const replica of [0, 1]) await expectExpired(await ask({ after }, replica));
    const text = await service.replicas[0]!.get(Metrics).registry.metrics();
    expect(text).toMatch(/^settings_feed_steps_back_total 1/m);
  });

  it('is detected even if new changes have drawn the same identifiers', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await put(name);
    const lost = await now();
    await lose(2);
    for (const name of ['x', 'y', 'z', 'w']) await put(name);
    // The log in memory may be 100 ms old, so the request waits for the next poll.
    for (const replica of [0, 1]) await expectExpired(await ask({ after: lost, waitSeconds: '1' }, replica));
    const { status } = await ask({ after: await now(), waitSeconds: '1' });
    expect(status).toBe(200);
  });

  it('expires only the cursors whose reader saw the lost change, even if newer changes remain', async () => {
    await put('a');
    await now();
    const late = new Client({ connectionString: service.database.ownerUrl });
    await late.connect();
    await late.query('BEGIN');
    await late.query(
      `INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id)
       VALUES ('old', 'late', 'Old', 'late', 'write', '1', 1, 1, 'test')`,
    );
    await put('b');
    const before = await now();
    await late.query('COMMIT');
    await late.end();
    const page = (await (await ask({ after: before, waitSeconds: '10' })).json()) as Page;
    expect(page.changes.map(({ settingName }) => settingName)).toEqual(['late']);
    await service.database.query(`DELETE FROM settings.setting_history WHERE setting_key = 'late'`);
    await expectExpired(await ask({ after: page.next }, 1));
    expect((await ask({ after: before }, 1)).status).toBe(200);
  });

  it('never issues an ETag twice', async () => {
    await put('a');
    const lost = await put('tag', 'lost');
    await lose(1);
    const found = await put('tag', 'other');
    expect(found.headers['etag']).not.toBe(lost.headers['etag']);
    await service.api
      .get(settingPath('Old', 'tag'))
      .set(PARTNER)
      .set('if-none-match', String(lost.headers['etag']))
      .expect(200);
    await service.api
      .put(settingPath('Old', 'tag'))
      .set(PARTNER)
      .set('if-match', String(lost.headers['etag']))
      .send({ settingValue: 2 })
      .expect(412);
  });

  it('is a 410 for a cursor that is ahead or too old, with how to start over', async () => {
    await put('one');
    const ahead = await now();
    await service.database.query('DELETE FROM settings.setting_history');
    const restored = await startSettings({ surroundings: service });
    const dayBeforeYesterday = Math.floor(Date.now() / 1_000) - 2 * 86_400;
    const cursors = restored.replicas[0]!.get(SignedCursor);
    for (const after of [
      ahead,
      cursors.encode('changes', [0, dayBeforeYesterday]),
      cursors.encode('changes', [0, [dayBeforeYesterday]]),
    ])
      await expectExpired(await fetch(`${restored.urls[0]}${PATH}?after=${after}`, { headers: PARTNER }));
    // A cursor as release 1.0.0 issues it.
    const old = cursors.encode('changes', [0, Math.floor(Date.now() / 1_000)]);
    expect((await fetch(`${restored.urls[0]}${PATH}?after=${old}`, { headers: PARTNER })).status).toBe(200);
    await restored.close();
  });
});

async function watchersOf(service: SettingsFixture, replica: number): Promise<number> {
  const metrics = service.replicas[replica]!.get(Metrics);
  const text = await metrics.registry.getSingleMetricAsString('settings_change_watchers');
  return Number(/^settings_change_watchers (\d+)$/m.exec(text)?.[1] ?? 0);
}
