import type { DataSource } from 'typeorm';
import type { Revision } from './entity-tag';
import type { StoredSetting } from './setting-json';
import type { SettingKey } from './setting-key';
import type { JsonText } from './setting-value';

/** A setting with its revision. */
export interface CurrentSetting extends StoredSetting {
  readonly revision: Revision;
}

const FIND_SETTING = `
  SELECT subsystem_name, setting_name, value_text, revision
    FROM settings.setting
   WHERE subsystem_key = $1 AND setting_key = $2`;

interface Row {
  subsystem_name: string;
  setting_name: string;
  value_text: JsonText;
  revision: Revision;
}

/** The hot read: one round trip by primary key, and no entity. */
export async function findSetting(dataSource: DataSource, key: SettingKey): Promise<CurrentSetting | null> {
  const rows = await dataSource.query<Row[]>(FIND_SETTING, [key.subsystem.key, key.setting.key]);
  const row = rows[0];
  if (row === undefined) return null;
  return {
    subsystemName: row.subsystem_name,
    settingName: row.setting_name,
    valueText: row.value_text,
    revision: row.revision,
  };
}
