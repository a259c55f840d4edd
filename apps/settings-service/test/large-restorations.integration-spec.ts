import { PARTNER, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

const VALUE_BYTES = 256 * 1024;
const MAX_VALUES = 1_024;
const VALUES_PER_STATEMENT = 32;

describe('a restoration that deletes large values', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings();
  });
  afterAll(() => service.close());

  const restore = (dryRun: boolean) =>
    service.api
      .post('/platform/v1/subsystems/large/commands/restore')
      .set(PARTNER)
      .send({ at: '2026-01-15T00:00:00Z', dryRun });
  /** Creates settings after the instant to restore, so that the restoration deletes them. */
  const fill = (settings: number) =>
    service.database.query(
      `WITH written AS (
         INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
         SELECT 'large', 'n' || n, 'large', 'n' || n, '"' || repeat('x', $2::int - 2) || '"' FROM generate_series(1, $1::int) AS n
         RETURNING *)
       INSERT INTO settings.setting_history
         (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id, occurred_at)
       SELECT subsystem_key, setting_key, subsystem_name, setting_name, 'write', value_text, revision, 1, 'r', '2026-02-01Z' FROM written`,
      [settings, VALUE_BYTES],
    );
  const deletionsByStatement = async (): Promise<number[]> => {
    const rows = await service.database.query<{ deletions: number }>(
      `SELECT count(*)::int AS deletions FROM settings.setting_history WHERE operation = 'delete' GROUP BY cmin::text`,
    );
    return rows.map(({ deletions }) => deletions);
  };

  it('deletes 256 MiB, 8 MiB per statement, and is refused beyond that', async () => {
    await fill(MAX_VALUES + 1);
    for (const dryRun of [true, false]) {
      const refused = await restore(dryRun).expect(422);
      expect(refused.body.type).toBe('urn:platform:problem:restore-too-large');
    }
    expect(await deletionsByStatement()).toEqual([]);
    await service.database.query(`DELETE FROM settings.setting WHERE setting_key = 'n1'`);
    const { body } = await restore(false).expect(200);
    expect(body.changes).toHaveLength(MAX_VALUES);
    const statements = MAX_VALUES / VALUES_PER_STATEMENT;
    expect(await deletionsByStatement()).toEqual(
      Array.from({ length: statements }, () => VALUES_PER_STATEMENT),
    );
  }, 120_000);
});
