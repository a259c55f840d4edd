import { eventually, testSize } from '@platform/testing';
import { LargeReads } from '../src/settings/large-reads';
import { CUSTOMER, PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

interface Page {
  settings: { subsystemName: string; settingName: string; settingValue: unknown }[];
  nextPageKey: string | null;
}

const ALL = '/platform/v1/settings';

describe('paged lists', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings();
  });
  beforeEach(() => service.database.query('TRUNCATE settings.setting'));
  afterAll(() => service.close());

  /** Inserts settings `prefix` + 000001, 000002, … directly into the database, for speed. */
  const fill = (subsystem: string, prefix: string, count: number) =>
    service.database.query(
      `INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
       SELECT $1, lower($2) || lpad(i::text, 6, '0'), $1, $2 || lpad(i::text, 6, '0'), i::text
         FROM generate_series(1, $3) AS i`,
      [subsystem, prefix, count],
    );
  const page = async (address: string, query: Record<string, string | number | null> = {}): Promise<Page> =>
    (await service.api.get(address).query(query).set(PARTNER).expect(200)).body as Page;
  const walk = async (address: string, pageSize: number, between?: (done: number) => Promise<unknown>) => {
    const pages: Page[] = [];
    for (let pageKey: string | null = null; pages.length === 0 || pageKey !== null;) {
      const next: Page = await page(address, pageKey === null ? { pageSize } : { pageSize, pageKey });
      pages.push(next);
      pageKey = next.nextPageKey;
      await between?.(pages.length);
    }
    return pages;
  };
  const namesOf = (pages: Page[]): string[] =>
    pages.flatMap(({ settings }) => settings.map((each) => `${each.subsystemName} ${each.settingName}`));

  it('have 100 settings per page by default, and no cursor on the last page', async () => {
    await fill('one', 'n', 100);
    expect(await page(ALL)).toMatchObject({ nextPageKey: null });
    await fill('two', 'n', 1);
    const first = await page(ALL);
    expect(first.settings).toHaveLength(100);
    expect(first.nextPageKey).toMatch(/^[A-Za-z0-9_-]+$/);
    const second = await page(ALL, { pageKey: first.nextPageKey });
    expect(second).toEqual({
      settings: [{ subsystemName: 'two', settingName: 'n000001', settingValue: 1 }],
      nextPageKey: null,
    });
  });

  it('show every setting once, in the order of the keys, at any page size', async () => {
    await fill('a', 'N', 7);
    await fill('b', 'n', 3);
    await fill('A0', 'n', 2);
    const all = namesOf(await walk(ALL, 1000));
    expect(all).toHaveLength(12);
    for (const pageSize of [1, 2, 3, 4, 6, 12]) expect(namesOf(await walk(ALL, pageSize))).toEqual(all);
    const ofA = namesOf(await walk('/platform/v1/subsystems/A/settings', 3));
    expect(ofA).toEqual(all.filter((name) => name.startsWith('a ')));
  });

  it('are empty for a subsystem without settings', async () => {
    const answer = await service.api.get('/platform/v1/subsystems/nobody/settings').set(CUSTOMER).expect(200);
    expect(answer.text).toBe('{"settings":[],"nextPageKey":null}');
  });

  it('accept a page size from 1 to 1000', async () => {
    await fill('a', 'n', 1001);
    for (const pageSize of [1, 1000]) {
      expect((await page(ALL, { pageSize })).settings).toHaveLength(pageSize);
    }
    for (const pageSize of ['0', '1001', '-1', '1.5', 'ten', '', '1e2'])
      await service.api.get(ALL).query({ pageSize }).set(PARTNER).expect(400);
    await service.api.get(`${ALL}?pageSize=1&pageSize=2`).set(PARTNER).expect(400);
  });

  it('end a page at 8 MiB, and still return everything', async () => {
    const value = `"${'x'.repeat(256 * 1024 - 2)}"`;
    await service.database.query(
      `INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
       SELECT 'big', 'n' || lpad(i::text, 2, '0'), 'big', 'n' || lpad(i::text, 2, '0'), $1 FROM generate_series(1, 40) AS i`,
      [value],
    );
    const pages = await walk(ALL, 1000);
    expect(pages.map(({ settings }) => settings.length)).toEqual([32, 8]);
    expect(new Set(namesOf(pages)).size).toBe(40);
  });

  it('continue at a replica that already has the next signing key, and back', async () => {
    await fill('rotate', 'n', 3);
    const keyOf = (byte: number) => Buffer.alloc(32, byte).toString('base64url');
    const start = (key: number, previous: number) =>
      startSettings({
        surroundings: service,
        variables: { CURSOR_HMAC_KEY: keyOf(key), CURSOR_HMAC_KEY_PREVIOUS: keyOf(previous) },
      });
    const [before, after, third] = [await start(1, 2), await start(2, 1), await start(2, 3)];
    const list = '/platform/v1/subsystems/rotate/settings';
    const next = async (from: SettingsFixture, to: SettingsFixture) => {
      const { body } = await from.api.get(list).query({ pageSize: 2 }).set(PARTNER).expect(200);
      const { body: changes } = await from.api.get('/platform/v1/changes').set(PARTNER).expect(200);
      const page = await to.api
        .get(list)
        .query({ pageSize: 2, pageKey: body.nextPageKey as string })
        .set(PARTNER);
      const watched = await to.api
        .get('/platform/v1/changes')
        .query({ after: changes.next as string })
        .set(PARTNER);
      return [page.status, watched.status];
    };
    expect(await next(before, after)).toEqual([200, 200]);
    expect(await next(after, before)).toEqual([200, 200]);
    expect(await next(before, third)).toEqual([400, 400]);
    for (const each of [before, after, third]) await each.close();
  });

  it('refuse every cursor of another list', async () => {
    await fill('a', 'n', 3);
    await fill('b', 'n', 3);
    const ofAll = (await page(ALL, { pageSize: 1 })).nextPageKey ?? '';
    const ofA = (await page('/platform/v1/subsystems/a/settings', { pageSize: 1 })).nextPageKey ?? '';
    const refused: (readonly [string, string])[] = [
      [ALL, ofA],
      [ALL, ''],
      [ALL, 'forged'],
      [ALL, `${ofAll}A`],
      [ALL, ofAll.slice(0, -1)],
      [ALL, ofAll.slice(0, 10)],
      [ALL, (ofAll.startsWith('A') ? 'B' : 'A') + ofAll.slice(1)],
      [ALL, 'x'.repeat(9000)],
      ['/platform/v1/subsystems/a/settings', ofAll],
      ['/platform/v1/subsystems/b/settings', ofA],
    ];
    for (const [address, pageKey] of refused) {
      const answer = await service.api.get(address).query({ pageKey }).set(PARTNER).expect(400);
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    }
    await page('/platform/v1/subsystems/A/settings', { pageKey: ofA });
  });

  it('return each of many settings once while others are created and deleted', async () => {
    const settings = testSize('TEST_PAGED_SETTINGS', { quick: 20_000, full: 100_000 });
    await fill('stays', 'n', settings);
    const churn = (done: number) =>
      service.database.query(
        `WITH gone AS (DELETE FROM settings.setting WHERE subsystem_key = 'churn')
         INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
         SELECT k, n, k, n, '0' FROM (VALUES ('stays', $1 || 'm'), ('stays', $1 || 'o'), ('aaa', $1), ('zzz', $1)) AS t(k, n)`,
        [String(done)],
      );
    const names = namesOf(await walk(ALL, 1000, churn));
    expect(new Set(names).size).toBe(names.length);
    const stayed = names.filter((name) => /^stays n\d{6}$/.test(name));
    expect(stayed).toHaveLength(settings);
    expect(stayed).toEqual([...stayed].sort());
  });

  it('read a late page with an index scan, like the first', async () => {
    await fill('many', 'n', 20_000);
    await service.database.query('ANALYZE settings.setting');
    const plan = await service.database.query<{ 'QUERY PLAN': string }>(
      `EXPLAIN SELECT * FROM settings.setting WHERE (subsystem_key, setting_key) > ('many', 'n019000')
       ORDER BY subsystem_key, setting_key LIMIT 101`,
    );
    const text = plan.map((row) => row['QUERY PLAN']).join('\n');
    expect(text).toMatch(/Index Scan using setting_pkey/);
    expect(text).not.toMatch(/Sort|Seq Scan/);
  });

  it('of more than 512 KiB reach a caller while two others fill all slots and the queue', async () => {
    await service.database.query(
      `INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
       SELECT 'large', n::text, 'Large', n::text, '"' || repeat('x', 200000) || '"' FROM generate_series(1, 4) AS n`,
    );
    const list = '/platform/v1/subsystems/large/settings';
    const reads = service.replicas[0]!.get(LargeReads);
    const ends: (() => void)[] = [];
    let refused = 0;
    /** Starts a large read for a caller that stays open until the test ends it. */
    const hold = (caller: string): Promise<unknown> => {
      const build = (bytes: number): Promise<number> =>
        bytes < 1024 ** 2
          ? Promise.resolve(bytes)
          : new Promise((resolve) => ends.push(() => resolve(bytes)));
      return reads
        .read(caller, build, (bytes) => bytes < 1024 ** 2)
        .catch((error: unknown) => {
          expect(error).toMatchObject({ reason: 'too-many-large-reads' });
          refused += 1;
        });
    };
    const other = Array.from({ length: 2 }, () => hold('personid:1002'));
    const held = [...other, ...Array.from({ length: 66 }, () => hold('personid:1001'))];
    await eventually(() => expect(ends).toHaveLength(4));
    await service.api.get(list).set(CUSTOMER).expect(503);
    const answer = service.api
      .get(list)
      .set(PARTNER)
      .then(({ status }) => status);
    await eventually(() => expect(refused).toBe(1));
    // The next free slot goes to the caller without a running read.
    ends[0]!();
    expect(await answer).toBe(200);
    for (let ended = 1; ended < 67; ended += 1) {
      await eventually(() => expect(ends.length).toBeGreaterThan(ended));
      ends[ended]!();
    }
    await Promise.all(held);
    expect(refused).toBe(1);
  });

  it('return names as they were written', async () => {
    await service.api.put(settingPath('Bc', 'N1')).set(PARTNER).send({ settingValue: 1 }).expect(200);
    expect(namesOf([await page(ALL)])).toEqual(['Bc N1']);
  });
});
