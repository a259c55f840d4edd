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

const FIND_SETTINGS: PreparedStatement = {
  name: 'find-settings',
  // The columns collate "C", and so must what they are compared with. LIMIT has each key looked up by itself: a plan that was made for a
  // small table joins the keys with all of a large one.
  text: `
  SELECT s.subsystem_name, s.setting_name, s.value_text, s.revision, k.position
    FROM unnest($1::text[] COLLATE "C", $2::text[] COLLATE "C") WITH ORDINALITY AS k (subsystem_key, setting_key, position)
    CROSS JOIN LATERAL (SELECT * FROM settings.setting
      WHERE subsystem_key = k.subsystem_key AND setting_key = k.setting_key LIMIT 1) AS s`,
};

/** Each of these settings as it is now, null where there is none; one round trip by primary key, and no entity. */
export async function findSettings(
  dataSource: DataSource,
  keys: readonly SettingKey[],
): Promise<(CurrentSetting | null)[]> {
  const [first] = keys;
  if (keys.length === 1 && first !== undefined) return [await findSetting(dataSource, first)];
  const rows = await queryPreparedArrays<[...Row, position: string]>(dataSource, FIND_SETTINGS, [
    keys.map(({ subsystem }) => subsystem.key),
    keys.map(({ setting }) => setting.key),
  ]);
  const found = keys.map((): CurrentSetting | null => null);
  for (const [subsystemName, settingName, valueText, revision, position] of rows) {
    found[Number(position) - 1] = { subsystemName, settingName, valueText, revision };
  }
  return found;
}

async function findSetting(dataSource: DataSource, key: SettingKey): Promise<CurrentSetting | null> {
  const [row] = await queryPreparedArrays<Row>(dataSource, FIND_SETTING, [
    key.subsystem.key,
    key.setting.key,
  ]);
  if (row === undefined) return null;
  const [subsystemName, settingName, valueText, revision] = row;
  return { subsystemName, settingName, valueText, revision };
}
