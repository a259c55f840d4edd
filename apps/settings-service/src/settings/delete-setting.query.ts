import type { EntityManager } from 'typeorm';
import { auditColumns } from './audit-trail';
import type { AuditTrail } from './audit-trail';
import { RECORDED_WRITE_COLUMNS, recordedWrite } from './history-entry';
import type { RecordedWrite, RecordedWriteRow } from './history-entry';
import type { SettingKey } from './setting-key';

const DELETE_SETTING = `
  WITH deleted AS (
    DELETE FROM settings.setting WHERE subsystem_key = $1 AND setting_key = $2
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation,
     person_id, user_id, person_name, persona, request_id, idempotency_digest)
  SELECT deleted.*, 'delete', $3, $4, $5, $6, $7, $8 FROM deleted
  RETURNING ${RECORDED_WRITE_COLUMNS}`;

/** Deletes the setting and records what it held; null, and no history entry, when there is none. */
export async function deleteSetting(
  manager: EntityManager,
  key: SettingKey,
  trail: AuditTrail,
): Promise<RecordedWrite | null> {
  const rows = await manager.query<RecordedWriteRow[]>(DELETE_SETTING, [
    ...[key.subsystem.key, key.setting.key],
    ...auditColumns(trail),
  ]);
  return rows[0] === undefined ? null : recordedWrite(rows[0]);
}
