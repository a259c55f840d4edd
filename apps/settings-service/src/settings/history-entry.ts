import type { Revision } from './entity-tag';
import type { StoredSetting } from './setting-json';

/** What happened to a setting. */
export type Operation = 'write' | 'delete';

/** What a write did, as its history entry tells: enough to answer the same request again. */
export interface RecordedWrite extends StoredSetting {
  readonly subsystemKey: string;
  readonly settingKey: string;
  readonly operation: Operation;
  readonly revision: Revision;
}

/** The columns of a RecordedWrite, for SELECT and RETURNING. */
export const RECORDED_WRITE_COLUMNS =
  'subsystem_key, setting_key, subsystem_name, setting_name, value_text, operation, revision';

/** A row of {@link RECORDED_WRITE_COLUMNS}. */
export interface RecordedWriteRow {
  readonly subsystem_key: string;
  readonly setting_key: string;
  readonly subsystem_name: string;
  readonly setting_name: string;
  readonly value_text: StoredSetting['valueText'];
  readonly operation: Operation;
  readonly revision: Revision;
}

export function recordedWrite(row: RecordedWriteRow): RecordedWrite {
  return {
    subsystemKey: row.subsystem_key,
    settingKey: row.setting_key,
    subsystemName: row.subsystem_name,
    settingName: row.setting_name,
    valueText: row.value_text,
    operation: row.operation,
    revision: row.revision,
  };
}
