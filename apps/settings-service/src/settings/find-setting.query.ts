import { queryPreparedArrays } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { Revision } from './entity-tag';
import type { StoredSetting } from './setting-json';
import type { SettingKey } from './setting-key';
import type { JsonText } from './setting-value';

/** A setting with its revision. */
export interface CurrentSetting extends StoredSetting {
  readonly revision: Revision;
}

const FIND_SETTING: PreparedStatement = {
  name: 'find-setting',
  text: `
  SELECT subsystem_name, setting_name, value_text, revision
    FROM settings.setting
   WHERE subsystem_key = $1 AND setting_key = $2`,
};

type Row = [subsystemName: string, settingName: string, valueText: JsonText, revision: Revision];

/** The hot read: one round trip by primary key, and no entity. */
export async function findSetting(dataSource: DataSource, key: SettingKey): Promise<CurrentSetting | null> {
  const [row] = await queryPreparedArrays<Row>(dataSource, FIND_SETTING, [key.subsystem.key, key.setting.key]);
  if (row === undefined) return null;
  const [subsystemName, settingName, valueText, revision] = row;
  return { subsystemName, settingName, valueText, revision };
}
