import type { TestPlatform } from '#platform/test-platform.ts';

/** Has some writes of settings be committed a while after they drew their identifier in the history, so that
 *  later ones pass them by: a
 *  feed that counts identifiers would leave them out. Each caller's own settings have no other writer, so the
 *  delay blocks nobody. */
export async function delaySomeCommits(platform: TestPlatform): Promise<void> {
  await platform.query(
    'settings',
    'CREATE SCHEMA chaos',
    `CREATE FUNCTION chaos.delay_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
       $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$`,
    `CREATE TRIGGER delay_commit AFTER INSERT ON settings.setting_history
       FOR EACH ROW WHEN (NEW.setting_key LIKE 'own-%' AND NEW.history_id % 20 = 0) EXECUTE FUNCTION chaos.delay_commit()`,
  );
}
