import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource, EntityManager } from 'typeorm';
import { auditColumns } from './audit-trail';
import type { AuditTrail } from './audit-trail';
import { RECORDED_WRITE_COLUMNS, recordedWrite } from './history-entry';
import type { RecordedWrite, RecordedWriteRow } from './history-entry';
import type { SettingKey } from './setting-key';
import type { JsonText } from './setting-value';

/** One statement for the setting and its history entry; the entry draws its identifier after the setting's row is locked. */
const WRITE_SETTING: PreparedStatement = {
  name: 'write-setting',
  text: `
  WITH written AS (
    INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (subsystem_key, setting_key)
      DO UPDATE SET value_text = excluded.value_text, revision = excluded.revision
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation,
     person_id, user_id, person_name, persona, request_id, idempotency_digest)
  SELECT written.*, 'write', $6, $7, $8, $9, $10, $11 FROM written
  RETURNING ${RECORDED_WRITE_COLUMNS}`,
};

/** Creates the setting, or replaces its value and keeps the casing of its names; records it in the same statement. */
export async function writeSetting(
  manager: EntityManager,
  key: SettingKey,
  value: JsonText,
  trail: AuditTrail,
): Promise<RecordedWrite> {
  return written(await manager.query(WRITE_SETTING.text, parameters(key, value, trail)));
}

/** As `writeSetting`, as a transaction of its own: one round trip. */
export async function writeSettingAlone(
  dataSource: DataSource,
  key: SettingKey,
  value: JsonText,
  trail: AuditTrail,
): Promise<RecordedWrite> {
  return written(await queryPrepared(dataSource, WRITE_SETTING, parameters(key, value, trail)));
}

function parameters({ subsystem, setting }: SettingKey, value: JsonText, trail: AuditTrail): unknown[] {
  return [subsystem.key, setting.key, subsystem.name, setting.name, value, ...auditColumns(trail)];
}

function written([row]: readonly RecordedWriteRow[]): RecordedWrite {
  if (row === undefined) throw new Error('an upsert with RETURNING gave no row');
  return recordedWrite(row);
}
