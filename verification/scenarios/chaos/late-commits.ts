import type { TestPlatform } from '#platform/test-platform.ts';

/**
 * Delays the commit of some writes of settings by 300 ms after they drew their identifier in the history.
 * Writes with higher identifiers commit first, so a feed that only compares identifiers would skip the
 * delayed ones. Only settings with a single writer are delayed, so the delay blocks no other caller.
 */
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
