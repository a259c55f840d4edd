import { postgresOptions } from '@platform/database';
import { createTestDatabase } from '@platform/testing';
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
      requestId: 'r',
      idempotencyKey: null,
    },
  };
}

describe('a batch of writes while another transaction has locked one of its rows', () => {
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
    await repository.writeAll([write('busy', '0'), write('free', '0')], 0);
  });
  afterAll(async () => {
    await other.end();
    await dataSource.destroy();
    await database.drop();
  });

  it.each([
    ['changes it', `UPDATE settings.setting SET value_text = '1' WHERE setting_key = 'busy'`, 'busy'],
    ['deletes it', `DELETE FROM settings.setting WHERE setting_key = 'busy'`, 'busy'],
    [
      'creates it',
      `INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
       VALUES ('s', 'new', 'S', 'new', '1')`,
      'new',
    ],
  ])('and %s: skips only that row', async (_what, statement, held) => {
    await other.query('BEGIN');
    await other.query(statement);
    const names = [held, 'free', 'fresh', 'zero'];
    const written = await Promise.all(names.map((name) => repository.writeUnlessLocked(write(name, '2'))));
    expect(written.map((each) => each && [each.settingName, each.valueText])).toEqual([
      null,
      ['free', '2'],
      ['fresh', '2'],
      ['zero', '2'],
    ]);
    await other.query('ROLLBACK');
    expect(await repository.writeOne(write(held, '2'), 0)).toMatchObject({ settingName: held });
    const entries = await database.query(
      `SELECT setting_key FROM settings.setting_history WHERE value_text = '2' ORDER BY setting_key`,
    );
    expect(entries.map(({ setting_key }) => setting_key)).toEqual(['free', 'fresh', 'zero', held].sort());
    await database.query('DELETE FROM settings.setting_history');
    await database.query(`DELETE FROM settings.setting WHERE setting_key IN ('fresh', 'zero', 'new')`);
  });
});
