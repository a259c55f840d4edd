import { runMigrations } from '@platform/database';
import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { MIGRATIONS, SCHEMA } from '../src/database-layout';
import { CreateSettings1795000000000 } from '../src/migrations/1795000000000-create-settings';

const settings = { schema: SCHEMA, applicationName: 'fold-test' };
let database: TestDatabase;

const migrate = (): Promise<string[]> =>
  runMigrations({ ...settings, url: database.ownerUrl, migrations: MIGRATIONS });

/** Inserts a setting and its history as the previous release wrote them. */
async function insertOld(subsystemName: string, settingName: string, value: string): Promise<void> {
  const keys = [subsystemName, settingName].map((name) => name.normalize('NFC').toLowerCase());
  const row = [...keys, subsystemName, settingName, value];
  const columns = 'subsystem_key, setting_key, subsystem_name, setting_name, value_text';
  await database.query(`INSERT INTO settings.setting (${columns}) VALUES ($1, $2, $3, $4, $5)`, row);
  await database.query(
    `INSERT INTO settings.setting_history (${columns}, operation, revision, persona, request_id)
     VALUES ($1, $2, $3, $4, $5, 'write', 1, 1, 'r')`,
    row,
  );
}

const keysOf = async (table: string): Promise<unknown[]> =>
  (
    await database.query(
      `SELECT subsystem_key || ' ' || setting_key AS keys, value_text FROM settings.${table} ORDER BY value_text`,
    )
  ).map(({ keys, value_text }) => [keys, value_text]);

describe('the migration to folded keys', () => {
  beforeEach(async () => {
    database = await createTestDatabase({
      migrate: (url) => runMigrations({ ...settings, url, migrations: [CreateSettings1795000000000] }),
    });
    await insertOld('ΟΔΟΣ', 'Straße', '1');
    await insertOld('plain', 'Größe', '2');
    await insertOld('plain', 'size', '3');
  });
  afterEach(() => database.drop());

  it('changes the keys of settings and history, once', async () => {
    expect(await migrate()).not.toEqual([]);
    const expected = [
      ['οδοσ strasse', '1'],
      ['plain grösse', '2'],
      ['plain size', '3'],
    ];
    expect(await keysOf('setting')).toEqual(expected);
    expect(await keysOf('setting_history')).toEqual(expected);
    expect(await migrate()).toEqual([]);
  });

  it('names all collisions and changes nothing, and succeeds once they are deleted', async () => {
    await insertOld('PLAIN', 'GRÖSSE', '4');
    await insertOld('οδος', 'strasse', '5');
    await insertOld('Οδοσ', 'STRASSE', '6');
    jest.spyOn(console, 'log').mockReturnValue();
    const before = [await keysOf('setting'), await keysOf('setting_history')];
    await expect(migrate()).rejects.toThrow(
      /delete all but one[^]*\n {2}"PLAIN" "GRÖSSE" = "plain" "Größe"\n {2}"οδος" "strasse" = "ΟΔΟΣ" "Straße" = "Οδοσ" "STRASSE"$/,
    );
    expect([await keysOf('setting'), await keysOf('setting_history')]).toEqual(before);
    await database.query(`DELETE FROM settings.setting WHERE value_text IN ('4', '5', '6')`);
    await migrate();
    expect((await keysOf('setting_history'))[3]).toEqual(['plain grösse', '4']);
  });
});
