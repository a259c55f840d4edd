import { CommandError } from '@platform/service-defaults';
import { settingNameKey } from '@platform/setting-names';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Maximum collisions listed in the error message. */
const MAX_NAMED = 20;

interface Keys {
  subsystem_key: string;
  setting_key: string;
}

/**
 * Changes keys from lower-cased names to names after full Unicode case folding, so that `straße` and
 * `STRASSE` are one name. The new key can be computed from the old one, because folding a lower-cased name
 * gives the same as folding the name. Two settings with the same new key are not merged but refused, because
 * a migration cannot decide which value to keep. Their histories are merged, as the history of one name.
 */
export class FoldSettingKeys1796400000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    // Blocks writers between the check and the update, but not readers.
    await runner.query('LOCK TABLE settings.setting, settings.setting_history IN SHARE ROW EXCLUSIVE MODE');
    await runner.query(`CREATE TEMPORARY TABLE refolded (subsystem_key text COLLATE "C", setting_key text COLLATE "C",
      new_subsystem_key text COLLATE "C", new_setting_key text COLLATE "C") ON COMMIT DROP`);
    await this.findChanges(runner);
    await this.refuseCollisions(runner);
    for (const table of ['setting', 'setting_history'])
      await runner.query(`UPDATE settings.${table} AS s SET subsystem_key = new_subsystem_key, setting_key = new_setting_key
        FROM refolded r WHERE s.subsystem_key = r.subsystem_key AND s.setting_key = r.setting_key`);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations only go forward'));
  }

  private async findChanges(runner: QueryRunner): Promise<void> {
    const isNotAscii = `octet_length(subsystem_key || setting_key) <> char_length(subsystem_key || setting_key)`;
    const keys = (await runner.query(`
      SELECT subsystem_key, setting_key FROM settings.setting WHERE ${isNotAscii}
      UNION SELECT subsystem_key, setting_key FROM settings.setting_history WHERE ${isNotAscii}`)) as Keys[];
    const changes = keys
      .map(({ subsystem_key, setting_key }) => [
        subsystem_key,
        setting_key,
        settingNameKey(subsystem_key),
        settingNameKey(setting_key),
      ])
      .filter(
        ([subsystem, setting, newSubsystem, newSetting]) =>
          subsystem !== newSubsystem || setting !== newSetting,
      );
    await runner.query(
      'INSERT INTO refolded SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])',
      [0, 1, 2, 3].map((column) => changes.map((change) => change[column])),
    );
    await runner.query('ANALYZE refolded');
  }

  private async refuseCollisions(runner: QueryRunner): Promise<void> {
    const collisions = (await runner.query(`
      SELECT string_agg(to_json(subsystem_name) || ' ' || to_json(setting_name), ' = ' ORDER BY subsystem_key, setting_key) AS names
        FROM settings.setting LEFT JOIN refolded USING (subsystem_key, setting_key)
       GROUP BY coalesce(new_subsystem_key, subsystem_key), coalesce(new_setting_key, setting_key)
      HAVING count(*) > 1 ORDER BY 1`)) as { names: string }[];
    if (collisions.length === 0) return;
    const named = collisions.slice(0, MAX_NAMED).map(({ names }) => `  ${names}`);
    if (collisions.length > MAX_NAMED) named.push(`  and ${String(collisions.length - MAX_NAMED)} more`);
    throw new CommandError(
      `nothing was changed: these settings (subsystem and setting) differ only in letter case and would become one. With the release in \
use, delete all but one of each line (its history stays), then migrate again:\n${named.join('\n')}`,
    );
  }
}
