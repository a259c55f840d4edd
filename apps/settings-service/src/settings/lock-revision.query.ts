import type { EntityManager } from 'typeorm';
import type { Revision } from './entity-tag';
import type { SettingKey } from './setting-key';

const LOCK_REVISION = `
  SELECT revision FROM settings.setting WHERE subsystem_key = $1 AND setting_key = $2 FOR UPDATE`;

/**
 * The setting's revision, null when there is none. The lock matters although the transaction is REPEATABLE READ: without it a setting
 * deleted meanwhile would be created again by a write that was allowed only for the deleted revision.
 */
export async function lockRevision(manager: EntityManager, key: SettingKey): Promise<Revision | null> {
  const rows = await manager.query<{ revision: Revision }[]>(LOCK_REVISION, [
    key.subsystem.key,
    key.setting.key,
  ]);
  return rows[0]?.revision ?? null;
}
