import { postgresOptions } from '@platform/database';
import { createTestDatabase, eventually } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { runMigrations } from '@platform/database';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { ENTITIES, MIGRATIONS, SCHEMA } from '../src/database-layout';
import { BatchedSettingsRepository } from '../src/settings/batched-settings.repository';
import type { SettingWrite } from '../src/settings/batched-settings.repository';
import type { JsonText } from '../src/settings/setting-value';

const settings = {
  schema: SCHEMA,
  applicationName: 'locked-rows',
  entities: ENTITIES,
  migrations: MIGRATIONS,
};

function write(setting: string, value: string): SettingWrite {
  return {
    key: { subsystem: { name: 'S', key: 's' }, setting: { name: setting, key: setting } },
    value: value as JsonText,
    trail: {
      author: { subject: 'userid:1', personId: null, userId: 1, name: 'Ivy', personas: 1 },
      ...{ requestId: 'r', idempotencyKey: null },
    },
  };
}

describe('a batch of writes while another transaction holds one of its rows', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let other: Client;
  let repository: BatchedSettingsRepository;

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: (url) => runMigrations({ ...settings, url }) });
    dataSource = new DataSource(
      postgresOptions({
        ...settings,
        url: database.ownerUrl,
        poolSize: 4,
        defaultIsolation: 'REPEATABLE READ',
      }),
    );
    await dataSource.initialize();
    other = new Client({ connectionString: database.ownerUrl });
    await other.connect();
    repository = new BatchedSettingsRepository(dataSource);
    await repository.writeAll([write('busy', '0'), write('free', '0')]);
  });
  afterAll(async () => {
    await other.end();
    await dataSource.destroy();
    await database.drop();
  });

  const waiters = async () => {
    const [row] = await database.query<{ waiting: number }>(
      `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return row?.waiting;
  };

  it.each([
    ['changes it', `UPDATE settings.setting SET value_text = '1' WHERE setting_key = 'busy'`, 'busy'],
    ['deletes it', `DELETE FROM settings.setting WHERE setting_key = 'busy'`, 'busy'],
    [
      'creates it',
      `INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
       VALUES ('s', 'new', 'S', 'new', '1')`,
      'new',
    ],
  ])('and %s: only the write of that row waits', async (_what, statement, held) => {
    await other.query('BEGIN');
    await other.query(statement);
    let isHeldWritten = false;
    const heldWrite = repository.write(write(held, '2')).then(() => (isHeldWritten = true));
    const others = ['free', 'fresh', 'zero'].map((name) => repository.write(write(name, '2')));
    const written = await Promise.all(others);
    expect(written.map(({ settingName, valueText }) => [settingName, valueText])).toEqual([
      ['free', '2'],
      ['fresh', '2'],
      ['zero', '2'],
    ]);
    expect(isHeldWritten).toBe(false);
    await eventually(async () => expect(await waiters()).toBe(1));
    await other.query('ROLLBACK');
    await heldWrite;
    const entries = await database.query(
      `SELECT setting_key FROM settings.setting_history WHERE value_text = '2' ORDER BY setting_key`,
    );
    expect(entries.map(({ setting_key }) => setting_key)).toEqual(['free', 'fresh', 'zero', held].sort());
    await database.query('DELETE FROM settings.setting_history');
    await database.query(`DELETE FROM settings.setting WHERE setting_key IN ('fresh', 'zero', 'new')`);
  });
});
