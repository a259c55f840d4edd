import type { EntityManager } from 'typeorm';
import { RECORDED_WRITE_COLUMNS, recordedWrite } from './history-entry';
import type { RecordedWrite, RecordedWriteRow } from './history-entry';
import type { SettingKey } from './setting-key';

const FIND_BY_DIGEST = `
  SELECT ${RECORDED_WRITE_COLUMNS} FROM settings.setting_history WHERE idempotency_digest = $1`;

const FIND_BY_ID = `
  SELECT ${RECORDED_WRITE_COLUMNS} FROM settings.setting_history
   WHERE history_id = $1 AND subsystem_key = $2 AND setting_key = $3`;

/** The write that an earlier request with this idempotency digest made. */
export async function findWriteByDigest(
  manager: EntityManager,
  digest: Buffer,
): Promise<RecordedWrite | null> {
  const rows = await manager.query<RecordedWriteRow[]>(FIND_BY_DIGEST, [digest]);
  return rows[0] === undefined ? null : recordedWrite(rows[0]);
}

/** The history entry `historyId` of the setting `key`; null when it does not exist or belongs to another setting. */
export async function findWriteById(
  manager: EntityManager,
  key: SettingKey,
  historyId: string,
): Promise<RecordedWrite | null> {
  const parameters = [historyId, key.subsystem.key, key.setting.key];
  const rows = await manager.query<RecordedWriteRow[]>(FIND_BY_ID, parameters);
  return rows[0] === undefined ? null : recordedWrite(rows[0]);
}
