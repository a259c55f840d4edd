import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource, EntityManager } from 'typeorm';
import { auditColumns } from './audit-trail';
import type { AuditTrail } from './audit-trail';
import { RECORDED_WRITE_COLUMNS, recordedWrite } from './history-entry';
import type { RecordedWrite, RecordedWriteRow } from './history-entry';
import type { SettingKey } from './setting-key';
import type { JsonText } from './setting-value';

/** A value for a setting. */
export interface SettingWrite {
  readonly key: SettingKey;
  readonly value: JsonText;
  readonly trail: AuditTrail;
}

/** One statement for the settings and their history entries; an entry draws its identifier after its setting's row is locked. The rows are
 *  locked in the order of their keys, so that no two replicas lock them crosswise. */
const WRITE_SETTINGS: PreparedStatement = {
  name: 'write-settings',
  text: `
  WITH request AS MATERIALIZED (
    SELECT * FROM unnest($1::text[] COLLATE "C", $2::text[] COLLATE "C", $3::text[], $4::text[], $5::text[],
      $6::bigint[], $7::bigint[], $8::text[], $9::smallint[], $10::text[], $11::bytea[])
      AS r (subsystem_key, setting_key, subsystem_name, setting_name, value_text,
        person_id, user_id, person_name, persona, request_id, idempotency_digest)
     ORDER BY subsystem_key, setting_key
  ), written AS (
    INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
    SELECT subsystem_key, setting_key, subsystem_name, setting_name, value_text FROM request
    ON CONFLICT (subsystem_key, setting_key)
      DO UPDATE SET value_text = excluded.value_text, revision = excluded.revision
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation,
     person_id, user_id, person_name, persona, request_id, idempotency_digest)
  SELECT w.*, 'write', r.person_id, r.user_id, r.person_name, r.persona, r.request_id, r.idempotency_digest
    FROM written w JOIN request r ON r.subsystem_key = w.subsystem_key AND r.setting_key = w.setting_key
  RETURNING ${RECORDED_WRITE_COLUMNS}`,
};

/** Creates the setting, or replaces its value and keeps the casing of its names; records it in the same statement. */
export async function writeSetting(manager: EntityManager, write: SettingWrite): Promise<RecordedWrite> {
  const [recorded] = await writeSettings(manager, [write]);
  return recorded!;
}

/** As `writeSetting`, for settings of different keys. With a data source it is a transaction by itself. */
export async function writeSettings(
  database: DataSource | EntityManager,
  writes: readonly SettingWrite[],
): Promise<RecordedWrite[]> {
  const rows = await queryPrepared<RecordedWriteRow>(database, WRITE_SETTINGS, columnsOf(writes));
  return writes.map(({ key }) => {
    const row = rows.find((each) => isOf(each, key));
    if (row === undefined) throw new Error('an upsert with RETURNING gave no row');
    return recordedWrite(row);
  });
}

function isOf(row: RecordedWriteRow, { subsystem, setting }: SettingKey): boolean {
  return row.setting_key === setting.key && row.subsystem_key === subsystem.key;
}

/** A list for each column. */
function columnsOf(writes: readonly SettingWrite[]): unknown[][] {
  const rows = writes.map(({ key: { subsystem, setting }, value, trail }) => [
    ...[subsystem.key, setting.key, subsystem.name, setting.name, value],
    ...auditColumns(trail),
  ]);
  return rows[0]!.map((_value, column) => rows.map((row) => row[column]));
}
