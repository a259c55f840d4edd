import { Metrics, ShutdownRegistry } from '@platform/service-defaults';
import { ManualClock, MINUTE_MS } from '@platform/time';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { postgresOptions } from '@platform/database';
import { ChangeFeedService } from '../src/changes/change-feed.service';
import { ChangesRepository } from '../src/changes/changes.repository';
import { PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

const writeEntry = (name: string): string => `
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id)
  VALUES ('late', '${name}', 'Late', '${name}', 'write', '1', 1, 1, 'test')`;

describe('the change feed during an open transaction that writes settings', () => {
  let service: SettingsFixture;
  let writer: Client;
  beforeEach(async () => {
    service = await startSettings();
    writer = new Client({ connectionString: service.database.ownerUrl });
    await writer.connect();
  });
  afterEach(async () => {
    await writer.end();
    await service.close();
  });

  const beginToWrite = async (): Promise<void> => {
    await writer.query('BEGIN');
    await writer.query(writeEntry('late'));
  };
  const put = (name: string) =>
    service.api.put(settingPath('Late', name)).set(PARTNER).send({ settingValue: 1 }).expect(200);
  const feedWith = (clock: ManualClock): ChangeFeedService =>
    new ChangeFeedService(
      service.replicas[0]!.get(ChangesRepository),
      clock,
      { maxWatchers: 1, tokenLifetimeSeconds: 60 },
      new ShutdownRegistry(),
      service.replicas[0]!.get(Metrics),
    );

  it('delivers the change of an older transaction that commits first, and then that of the younger one', async () => {
    const older = new Client({ connectionString: service.database.ownerUrl });
    await older.connect();
    try {
      const { body } = await service.api.get('/platform/v1/changes').set(PARTNER).expect(200);
      let { next } = body as { next: string };
      // The writer that stays open has the highest transaction id. A snapshot's xmax does not include it.
      await older.query('BEGIN');
      await older.query('SELECT pg_current_xact_id()');
      await beginToWrite();
      await older.query(writeEntry('early'));
      await older.query('COMMIT');
      const delivered: string[] = [];
      const follow = async (): Promise<void> => {
        const query = { after: next, waitSeconds: 1 };
        const page = await service.api.get('/platform/v1/changes').query(query).set(PARTNER).expect(200);
        const { changes, next: onwards } = page.body as { changes: { settingName: string }[]; next: string };
        delivered.push(...changes.map(({ settingName }) => settingName));
        next = onwards;
      };
      // The gap must stay open during these polls.
      for (let pages = 0; pages < 3; pages += 1) await follow();
      expect(delivered).toEqual(['early']);
      await writer.query('COMMIT');
      await follow();
      expect(delivered).toEqual(['early', 'late']);
    } finally {
      await older.end();
    }
  });

  it('starts once the transaction has ended, and refuses earlier requests within seconds', async () => {
    await beginToWrite();
    const startedAt = performance.now();
    const ask = () => service.api.get('/platform/v1/changes').set(PARTNER);
    const refused = await Promise.all([ask(), ask()]);
    expect(performance.now() - startedAt).toBeLessThan(9_000);
    for (const { status, body } of refused)
      expect([status, body]).toMatchObject([503, { type: 'urn:platform:problem:changes-not-settled' }]);
    await writer.query('COMMIT');
    const { body } = await ask().expect(200);
    const { next } = body as { next: string };
    await put('early');
    const page = await service.api
      .get('/platform/v1/changes')
      .query({ after: next, waitSeconds: 30 })
      .set(PARTNER);
    expect(page.body).toMatchObject({ changes: [{ settingName: 'early' }] });
  });

  it('continues with its previous log after a minute without readers', async () => {
    const clock = new ManualClock('2026-01-01T00:00:00Z');
    const feed = feedWith(clock);
    const read = async (after: Parameters<ChangeFeedService['read']>[0]['after']) =>
      feed.read({
        after,
        subsystemKey: null,
        waitMs: 0,
        signal: new AbortController().signal,
        holder: { caller: 'c', application: 'a' },
      });
    const { next } = await read(null);
    await beginToWrite();
    await put('early');
    clock.advance(2 * MINUTE_MS);
    const early = await read(next);
    expect(early.changes.map(({ settingName }) => settingName)).toEqual(['early']);
    await writer.query('COMMIT');
    clock.advance(1_000);
    const late = await read(early.next);
    expect(late.changes.map(({ settingName }) => settingName)).toEqual(['late']);
  });

  it('includes a writer that began after the snapshot of the poll', async () => {
    const dataSource = new DataSource(
      postgresOptions({
        url: service.database.url,
        schema: 'settings',
        applicationName: 'poll',
        entities: [],
        migrations: [],
        poolSize: 1,
      }),
    );
    await dataSource.initialize();
    try {
      // The snapshot is older than the writer, as when a writer begins during a poll.
      await dataSource.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await dataSource.query('SELECT 1');
      await beginToWrite();
      const result = await new ChangesRepository(dataSource).poll(
        { upTo: 0, ids: [] },
        { includesWriters: true },
      );
      // Other databases of the server may have older transactions.
      expect(result.writersFrom).toBeGreaterThanOrEqual(result.xmin);
      expect(result.nextXid).toBeGreaterThan(result.xmin);
      await dataSource.query('COMMIT');
    } finally {
      await dataSource.destroy();
    }
  });
});
