import type { DataSource } from 'typeorm';
import type { StoredSetting } from './setting-json';
import type { JsonText } from './setting-value';

/** Values of one page hold at most this many bytes, one setting always goes through: 1,000 of the largest would be 256 MB. */
export const MAX_PAGE_BYTES = 8 * 1024 * 1024;

/** Where a page ended. */
export interface ListPosition {
  readonly subsystemKey: string;
  readonly settingKey: string;
}

/** One page; `next` is where the following one starts, null on the last. */
export interface SettingsPage {
  readonly settings: readonly StoredSetting[];
  readonly next: ListPosition | null;
}

interface Row {
  subsystem_key: string;
  setting_key: string;
  subsystem_name: string;
  setting_name: string;
  value_text: JsonText;
  candidates: string;
}

/**
 * Keyset paging: each page is one range of the primary key, as cheap at the end of the list as at its start. `bytes_before` asks for
 * sizes only, which does not read the values themselves.
 */
const page = (range: string): string => `
  SELECT subsystem_key, setting_key, subsystem_name, setting_name, value_text, candidates
    FROM (SELECT *,
                 row_number() OVER list AS position,
                 count(*) OVER () AS candidates,
                 sum(octet_length(value_text)) OVER list - octet_length(value_text) AS bytes_before
            FROM (SELECT subsystem_key, setting_key, subsystem_name, setting_name, value_text
                    FROM settings.setting
                   WHERE ${range}
                   ORDER BY subsystem_key, setting_key
                   LIMIT $3 + 1) AS candidate
          WINDOW list AS (ORDER BY subsystem_key, setting_key)) AS measured
   WHERE position <= $3 AND (position = 1 OR bytes_before + octet_length(value_text) <= $4)
   ORDER BY subsystem_key, setting_key`;

const LIST_ALL = page('(subsystem_key, setting_key) > ($1, $2)');
const LIST_SUBSYSTEM = page('subsystem_key = $1 AND setting_key > $2');

// No name is empty, so this is before every setting.
const START = '';

/** Settings of all subsystems after `after`, or from the start. */
export function listAllSettings(
  dataSource: DataSource,
  pageSize: number,
  after: ListPosition | null,
): Promise<SettingsPage> {
  return readPage(dataSource, LIST_ALL, [after?.subsystemKey ?? START, after?.settingKey ?? START, pageSize]);
}

/** Settings of one subsystem after `afterSettingKey`, or from the start; empty for a subsystem nobody wrote to. */
export function listSubsystemSettings(
  dataSource: DataSource,
  subsystemKey: string,
  pageSize: number,
  afterSettingKey: string | null,
): Promise<SettingsPage> {
  return readPage(dataSource, LIST_SUBSYSTEM, [subsystemKey, afterSettingKey ?? START, pageSize]);
}

async function readPage(
  dataSource: DataSource,
  sql: string,
  parameters: readonly (string | number)[],
): Promise<SettingsPage> {
  const rows = await dataSource.query<Row[]>(sql, [...parameters, MAX_PAGE_BYTES]);
  const last = rows.at(-1);
  const hasMore = last !== undefined && Number(last.candidates) > rows.length;
  return {
    settings: rows.map((row) => ({
      subsystemName: row.subsystem_name,
      settingName: row.setting_name,
      valueText: row.value_text,
    })),
    next: hasMore ? { subsystemKey: last.subsystem_key, settingKey: last.setting_key } : null,
  };
}
