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

describe('the feed of changes', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings({ replicas: 2, variables: { CHANGES_MAX_WATCHERS: '5' } });
  });
  afterAll(() => service.close());

  const ask = async (query: Record<string, string>, replica = 0, init: RequestInit = {}): Promise<Page> => {
    const url = `${service.urls[replica]}${PATH}?${new URLSearchParams(query).toString()}`;
    const response = await fetch(url, { headers: CUSTOMER, ...init });
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
  /** Until everything is there that is expected; each page continues where the last one ended, at the other replica. */
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

  it('tells of writes and deletes in their order, with ETags, at every replica', async () => {
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

  it('tells of one subsystem only, whatever the case of its name, and its token is of that list', async () => {
    const after = await now({ subsystem: 'FEED' });
    const waiting = ask({ after, subsystem: 'feed', waitSeconds: '30' });
    await isWaiting();
    await put('Another', 'one');
    await put('Feed', 'mine');
    expect((await waiting).changes.map(({ settingName }) => settingName)).toEqual(['mine']);
    const { body } = await service.api.get(PATH).query({ after }).set(OWNER).expect(400);
    expect(body.errors).toEqual({ after: ['is not valid'] });
  });

  it('responds with nothing when the wait is over, and goes on from there', async () => {
    const { changes, next } = await ask({ waitSeconds: '1' });
    expect(changes).toEqual([]);
    await put('Feed', 'later');
    expect((await ask({ after: next, waitSeconds: '30' })).changes).toHaveLength(1);
  });

  it('tells of what commits late, in spite of an old transaction elsewhere that never ends', async () => {
    const [foreign, late] = [await database(), await database()];
    try {
      await foreign.query('BEGIN');
      await foreign.query('SELECT pg_current_xact_id()');
      await put('Late', 'seen');
      const after = await now();
      // The service's own statement in a transaction that stays open.
      await late.query('BEGIN');
      await late.query(
        `INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id)
         VALUES ('late', 'late', 'Late', 'late', 'write', '1', 1, 1, 'test')`,
      );
      await put('Late', 'early');
      const { changes, next } = await ask({ after, waitSeconds: '30' });
      expect(changes.map(({ settingName }) => settingName)).toEqual(['early']);
      // Longer than gaps are left alone, so that writers are asked for.
      expect((await ask({ after: next, waitSeconds: '2' })).changes).toEqual([]);
      const waiting = ask({ after: next, waitSeconds: '30' }, 1);
      await late.query('COMMIT');
      expect((await waiting).changes.map(({ settingName }) => settingName)).toEqual(['late']);
    } finally {
      await Promise.all([foreign.end(), late.end()]);
    }
  });

  it('forgets the gap that a failed write leaves, in spite of an old transaction elsewhere', async () => {
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

  it('leads a reader that is far behind through everything, page by page', async () => {
    const after = await now();
    const names = Array.from({ length: 2_500 }, (_, index) => `many ${String(index)}`);
    await service.database.query(
      `INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id)
       SELECT 'many', name, 'Many', name, 'write', '1', 1, 1, 'test' FROM unnest($1::text[]) AS name`,
      [names],
    );
    expect((await follow(after, names.length)).map(({ settingName }) => settingName)).toEqual(names);
  });

  it('refuses more watchers than are allowed with 503, and has room again when they have gone', async () => {
    const after = await now();
    const gone = new AbortController();
    const watchers = Array.from({ length: 5 }, () =>
      ask({ after, waitSeconds: '30' }, 0, { signal: gone.signal }),
    );
    const ended = Promise.allSettled(watchers);
    await eventually(async () => expect(await watchersOf(service, 0)).toBe(5));
    const refused = await service.api.get(PATH).query({ after, waitSeconds: '30' }).set(CUSTOMER).expect(503);
    expect(refused.body.type).toBe('urn:platform:problem:too-many-watchers');
    expect(refused.headers['retry-after']).toBe('1');
    await service.api.get(PATH).query({ after }).set(CUSTOMER).expect(200);
    gone.abort();
    await ended;
    await eventually(async () => expect(await watchersOf(service, 0)).toBe(0));
  });

  it('does not tell a watcher whose token was revoked meanwhile', async () => {
    const jti = 'a-token-that-is-revoked-while-it-waits';
    const headers = { authorization: `Bearer ${testAccessToken({ personas: 2, jti })}` };
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
    ['a token of nobody', { after: 'x' }],
    ['an empty token', { after: '' }],
    ['a wait without end', { waitSeconds: '31' }],
    ['a wait in words', { waitSeconds: 'long' }],
    ['a name that no subsystem can have', { subsystem: '\u0007' }],
  ])('refuses %s with 400', async (_case, query) => {
    await service.api.get(PATH).query(query).set(CUSTOMER).expect(400);
  });

  it('is for those who may read', async () => {
    await service.api.get(PATH).expect(401);
    await service.api.get(PATH).set(RESIDENT).expect(403);
    for (const caller of [CUSTOMER, OWNER, PARTNER]) await service.api.get(PATH).set(caller).expect(200);
  });

  it('responds at once to everybody that waits when the service stops', async () => {
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

describe('a token', () => {
  it('that is ahead of a restored history, or too old, is answered with 410 and how to start over', async () => {
    const service = await startSettings();
    try {
      const path = settingPath('Old', 'one');
      await service.api.put(path).set(PARTNER).send({ settingValue: 1 }).expect(200);
      const { body } = await service.api.get(PATH).set(CUSTOMER).expect(200);
      await service.database.query('DELETE FROM settings.setting_history');
      const restored = await startSettings({ surroundings: service });
      const dayBeforeYesterday = Math.floor(Date.now() / 1_000) - 2 * 86_400;
      const old = restored.replicas[0]!.get(SignedCursor).encode('changes', [0, dayBeforeYesterday]);
      for (const after of [body.next, old]) {
        const expired = await restored.api.get(PATH).query({ after }).set(CUSTOMER).expect(410);
        expect(expired.body).toMatchObject({
          type: 'urn:platform:problem:changes-expired',
          detail: expect.stringContaining('without `after`'),
        });
      }
      await restored.close();
    } finally {
      await service.close();
    }
  });
});

async function watchersOf(service: SettingsFixture, replica: number): Promise<number> {
  const metrics = service.replicas[replica]!.get(Metrics);
  const text = await metrics.registry.getSingleMetricAsString('settings_change_watchers');
  return Number(/^settings_change_watchers (\d+)$/m.exec(text)?.[1] ?? 0);
}
