import { postgresOptions, runMigrations } from '@platform/database';
import { describeStatementsAtScale, scaleRows } from '@platform/testing';
import type { HotStatement } from '@platform/testing';
import { DataSource } from 'typeorm';
import { ENTITIES, MIGRATIONS, SCHEMA } from '../src/database-layout';
import { BatchedSettingsRepository } from '../src/settings/batched-settings.repository';
import type { SettingKey } from '../src/settings/setting-key';
import type { JsonText } from '../src/settings/setting-value';
import { PastSettingsRepository } from '../src/settings/past-settings.repository';
import { SettingsRepository } from '../src/settings/settings.repository';
import { SettledPastRepository } from '../src/settings/settled-past.repository';
import type { AuditTrail } from '../src/settings/write-request';

const ROWS = scaleRows();

const settings = { schema: SCHEMA, applicationName: 'scale', entities: ENTITIES, migrations: MIGRATIONS };
const migrate = (url: string): Promise<unknown> => runMigrations({ ...settings, url, poolSize: 1 });

const nameOf = (n: number): string => `n${String(n).padStart(8, '0')}`;
const keyOf = (n: number): SettingKey => ({
  subsystem: { name: 'Many', key: 'many' },
  setting: { name: nameOf(n), key: nameOf(n) },
});
const TRAIL: AuditTrail = {
  author: { subject: 'personid:1', personId: 1, userId: null, name: 'Ann', personas: 4 },
  requestId: 'r',
  idempotencyKey: null,
};

const READER = 'personid:1';
const VALUE = '1' as JsonText;
const write = (key: SettingKey) => ({ key, value: VALUE, trail: TRAIL });
const repository = (dataSource: DataSource) => new SettingsRepository(dataSource);
const batch = (dataSource: DataSource) => new BatchedSettingsRepository(dataSource);
const past = (dataSource: DataSource) => new PastSettingsRepository(dataSource);
/** Returns the timestamp of history entry `n`. Entries are one second apart. */
const instantOf = (n: number): Date => new Date(Date.UTC(2026, 0, 1) + n * 1_000);
const ANY = {
  subsystemKey: undefined,
  personId: undefined,
  userId: undefined,
  from: undefined,
  to: undefined,
};
const RESTORATION = { subsystemKey: 'many', at: instantOf(ROWS) };
const MIDDLE = Math.floor(ROWS / 2);
const PAGE = 100;

async function restoreThousand(dataSource: DataSource): Promise<void> {
  const { different } = await past(dataSource).comparePart(dataSource.manager, RESTORATION, nameOf(MIDDLE));
  expect(different).toHaveLength(1_000);
  await past(dataSource).restoreAll(dataSource.manager, RESTORATION, TRAIL, different);
}

const STATEMENTS: readonly HotStatement<DataSource>[] = [
  { name: 'read a setting', pages: 10, prepared: true, work: (d) => batch(d).findAll([keyOf(MIDDLE)]) },
  {
    name: 'read ten settings',
    pages: 60,
    prepared: true,
    work: (d) => batch(d).findAll(Array.from({ length: 10 }, (_, i) => keyOf(MIDDLE + 997 * i))),
  },
  {
    name: 'lock a setting',
    pages: 10,
    work: (d) => repository(d).lockRevisions(d.manager, [keyOf(MIDDLE)], 0),
  },
  {
    name: 'replace a setting',
    // The first write of a connection also reads the catalogue entries of the function that sets its
    // timestamp.
    pages: 480,
    prepared: true,
    work: (d) => batch(d).writeAll([write(keyOf(MIDDLE))], 0),
  },
  {
    name: 'create a setting',
    pages: 220,
    prepared: true,
    work: (d) => batch(d).writeAll([write(keyOf(ROWS + MIDDLE))], 0),
  },
  {
    name: 'replace twenty settings',
    pages: 1_500,
    prepared: true,
    work: (d) =>
      batch(d).writeAll(
        Array.from({ length: 20 }, (_, i) => write(keyOf(MIDDLE + 997 * i))),
        0,
      ),
  },
  {
    name: 'replace twenty settings unless their rows are locked',
    pages: 1_800,
    prepared: true,
    work: (d) => {
      const { writeUnlessLocked } = batch(d);
      const writes = Array.from({ length: 20 }, (_, i) => write(keyOf(MIDDLE + 997 * i)));
      return Promise.all(writes.map((each) => writeUnlessLocked(each)));
    },
  },
  {
    name: 'delete a setting',
    pages: 220,
    work: (d) => repository(d).deleteAll(d.manager, [{ key: keyOf(ROWS + MIDDLE), trail: TRAIL }]),
  },
  {
    name: 'find a repeated write',
    pages: 10,
    work: (d) => repository(d).findWritesByDigests(d.manager, [Buffer.from('unknown')]),
  },
  {
    name: 'find a history entry',
    pages: 10,
    work: (d) => repository(d).findWriteById(d.manager, keyOf(MIDDLE), String(MIDDLE)),
  },
  { name: 'list the first page', pages: 130, work: (d) => repository(d).listAll(READER, PAGE, null) },
  {
    name: 'list a deep page',
    pages: 130,
    work: (d) =>
      repository(d).listAll(READER, PAGE, { subsystemKey: 'many', settingKey: nameOf(ROWS - 200) }),
  },
  {
    name: 'list the first page of a subsystem',
    pages: 130,
    work: (d) => repository(d).listSubsystem(READER, 'many', PAGE, null),
  },
  {
    name: 'list a deep page of a subsystem',
    pages: 130,
    work: (d) => repository(d).listSubsystem(READER, 'many', PAGE, nameOf(ROWS - 200)),
  },
  {
    name: 'list an unknown subsystem',
    pages: 10,
    work: (d) => repository(d).listSubsystem(READER, 'nobody', PAGE, null),
  },
  {
    name: 'list the history of a setting',
    pages: 130,
    work: (d) => repository(d).listHistory(READER, keyOf(MIDDLE), PAGE, null),
  },
  {
    name: 'list the history of the most written setting',
    pages: 130,
    work: (d) => repository(d).listHistory(READER, keyOf(1), PAGE, null),
  },
  {
    name: 'list old history of the most written setting',
    pages: 130,
    work: (d) => repository(d).listHistory(READER, keyOf(1), PAGE, String(Math.floor(ROWS * 1.05))),
  },
  {
    name: 'read ten settings at once',
    pages: 70,
    work: (d) =>
      repository(d).findMany(
        READER,
        Array.from({ length: 10 }, (_, i) => keyOf(MIDDLE + 997 * i)),
      ),
  },
  { name: 'list all history', pages: 130, work: (d) => past(d).listEntries(READER, ANY, PAGE, null) },
  {
    name: 'list old history of all settings',
    pages: 240,
    work: (d) => past(d).listEntries(READER, ANY, PAGE, String(MIDDLE)),
  },
  {
    name: 'list all history before an instant',
    pages: 240,
    work: (d) => past(d).listEntries(READER, { ...ANY, to: instantOf(MIDDLE) }, PAGE, null),
  },
  {
    name: 'list the changes of a subsystem before an instant',
    pages: 240,
    work: (d) =>
      past(d).listEntries(READER, { ...ANY, subsystemKey: 'many', to: instantOf(MIDDLE) }, PAGE, null),
  },
  {
    name: 'list the changes of a person in a period',
    pages: 240,
    work: (d) =>
      past(d).listEntries(
        READER,
        { ...ANY, personId: '1', from: instantOf(MIDDLE - 500), to: instantOf(MIDDLE) },
        PAGE,
        null,
      ),
  },
  {
    name: 'list the changes of a user without changes',
    pages: 10,
    work: (d) => past(d).listEntries(READER, { ...ANY, userId: '5' }, PAGE, null),
  },
  {
    name: 'read a past value of a setting',
    pages: 250,
    work: (d) => past(d).findAt(keyOf(MIDDLE), instantOf(ROWS)),
  },
  {
    name: 'read a past value of the most written setting',
    pages: 250,
    work: (d) => past(d).findAt(keyOf(1), instantOf(MIDDLE)),
  },
  {
    name: 'list the past settings of a subsystem',
    pages: 2_000,
    work: (d) => past(d).listSubsystemAt(READER, 'many', instantOf(ROWS), PAGE, nameOf(MIDDLE)),
  },
  {
    name: 'list the changes of a person in a subsystem, where each has many but not together',
    pages: 30_000,
    work: (d) => past(d).listEntries(READER, { ...ANY, subsystemKey: 'many', personId: '2' }, PAGE, null),
  },
  {
    name: 'list the past settings of a subsystem with many deleted names',
    pages: 90_000,
    work: (d) => past(d).listSubsystemAt(READER, 'gone', instantOf(2 * ROWS), PAGE, null),
  },
  {
    name: 'find the current writers',
    pages: 50,
    work: (d) => new SettledPastRepository(d).readWriters(),
  },
  {
    name: 'compare a thousand settings with the past',
    pages: 20_000,
    work: (d) => past(d).comparePart(d.manager, RESTORATION, nameOf(MIDDLE)),
  },
  {
    name: 'restore a thousand settings',
    pages: 60_000,
    work: (d) => restoreThousand(d),
  },
];

const FILL = [
  `INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
   SELECT 'many', 'n' || lpad(n::text, 8, '0'), 'Many', 'n' || lpad(n::text, 8, '0'), '{"n":' || n || '}'
   FROM generate_series(1, ${String(ROWS)}) AS n`,
  // One write per setting, and a further tenth of them to the first setting.
  `INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text,
     revision, person_id, person_name, persona, request_id, idempotency_digest, occurred_at)
   SELECT 'many', 'n' || lpad((CASE WHEN n > ${String(ROWS)} THEN 1 ELSE n END)::text, 8, '0'), 'Many', 'n', 'write', '1',
     n, 1, 'Ann', 4, 'r', sha256(n::text::bytea), timestamptz '2026-01-01Z' + n * interval '1 s'
   FROM generate_series(1, ${String(Math.floor(ROWS * 1.1))}) AS n`,
  // Names that were all deleted, by another person.
  `INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text,
     revision, person_id, person_name, persona, request_id, occurred_at)
   SELECT 'gone', 'n' || lpad((n % ${String(Math.floor(ROWS / 5))})::text, 8, '0'), 'Gone', 'n',
     CASE WHEN n < ${String(Math.floor(ROWS / 5))} THEN 'write' ELSE 'delete' END, '1', n, 2, 'Bob', 4, 'r',
     timestamptz '2025-06-01Z' + n * interval '1 s'
   FROM generate_series(0, ${String(Math.floor(ROWS / 5) * 2 - 1)}) AS n`,
  'ANALYZE settings.setting, settings.setting_history',
];

describeStatementsAtScale<DataSource>({
  migrate,
  fill: FILL,
  early: [{ name: 'read a setting', pages: 10, work: (d) => batch(d).findAll([keyOf(MIDDLE)]) }],
  connect: (url) => {
    const options = postgresOptions({ ...settings, url, poolSize: 1, statementTimeoutMs: 0 });
    // Keeps the connection open while the tables fill, because the plan made for empty tables belongs to it.
    return new DataSource({ ...options, extra: { ...(options.extra as object), idleTimeoutMillis: 0 } });
  },
  statements: STATEMENTS,
});
