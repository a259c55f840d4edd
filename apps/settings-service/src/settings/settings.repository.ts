import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import type { Revision } from './entity-tag';
import { HistoryEntry } from './history-entry.entity';
import type { ListedEntry, RecordedWrite } from './history-entry.entity';
import type { SettingKey } from './setting-key';
import type { ListPosition, ListedSetting } from './setting.entity';
import { auditColumns } from './write-request';
import type { AuditTrail } from './write-request';

/** One page of a list. */
interface Page<Row> {
  readonly rows: readonly Row[];
  /** The row after which the next page starts; null on the last page. */
  readonly next: Row | null;
}

/** Values of one page hold at most this many bytes, one row always goes through: 1,000 of the largest would be 256 MB. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;

/** The columns of a RecordedWrite, for RETURNING. */
export const RECORDED_WRITE_COLUMNS = `subsystem_key AS "subsystemKey", setting_key AS "settingKey",
    subsystem_name AS "subsystemName", setting_name AS "settingName", value_text AS "valueText", operation, revision`;

const LOCK_REVISION = `
  SELECT revision FROM settings.setting WHERE subsystem_key = $1 AND setting_key = $2 FOR UPDATE`;

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

// Keyset paging: each page is one range of an index, as cheap at the end of the list as at its start. By hand: a page is limited in bytes
// too. `bytes_before` asks for sizes only, which does not read the values themselves.
const page = (list: { table: string; columns: string; range: string; order: string }): string => `
  SELECT ${list.columns}, candidates
    FROM (SELECT *,
                 row_number() OVER list AS position,
                 count(*) OVER () AS candidates,
                 sum(octet_length(value_text)) OVER list - octet_length(value_text) AS bytes_before
            FROM (SELECT * FROM ${list.table} WHERE ${list.range} ORDER BY ${list.order} LIMIT $3 + 1) AS candidate
          WINDOW list AS (ORDER BY ${list.order})) AS measured
   WHERE position <= $3 AND (position = 1 OR bytes_before + octet_length(value_text) <= $4)
   ORDER BY ${list.order}`;

const SETTINGS = {
  table: 'settings.setting',
  columns: `subsystem_key AS "subsystemKey", setting_key AS "settingKey", subsystem_name AS "subsystemName",
    setting_name AS "settingName", value_text AS "valueText"`,
  order: 'subsystem_key, setting_key',
};
const LIST_ALL = page({ ...SETTINGS, range: '(subsystem_key, setting_key) > ($1, $2)' });
const LIST_SUBSYSTEM = page({ ...SETTINGS, range: 'subsystem_key = $1 AND setting_key > $2' });
const LIST_HISTORY = page({
  table: 'settings.setting_history',
  columns: `history_id AS "historyId", operation, value_text AS "valueText", person_id AS "personId", user_id AS "userId",
    person_name AS "personName", persona, occurred_at AS "occurredAt", request_id AS "requestId"`,
  range: 'subsystem_key = $1 AND setting_key = $2 AND ($5::bigint IS NULL OR history_id < $5)',
  order: 'history_id DESC',
});

// No name is empty, so this is before every setting.
const START = '';

/** Settings and their history. What is hot is in `BatchedSettingsRepository`. */
@Injectable()
export class SettingsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Settings of all subsystems after `after`, or from the start. */
  listAll(pageSize: number, after: ListPosition | null): Promise<Page<ListedSetting>> {
    return this.readPage(LIST_ALL, [after?.subsystemKey ?? START, after?.settingKey ?? START, pageSize]);
  }

  /** Settings of one subsystem after `afterSettingKey`, or from the start; empty for a subsystem nobody wrote to. */
  listSubsystem(
    subsystemKey: string,
    pageSize: number,
    afterSettingKey: string | null,
  ): Promise<Page<ListedSetting>> {
    return this.readPage(LIST_SUBSYSTEM, [subsystemKey, afterSettingKey ?? START, pageSize]);
  }

  /** Entries of one setting older than `before`, newest first; also after the setting was deleted. */
  listHistory(key: SettingKey, pageSize: number, before: string | null): Promise<Page<ListedEntry>> {
    return this.readPage(LIST_HISTORY, [key.subsystem.key, key.setting.key, pageSize], [before]);
  }

  private async readPage<Row>(
    sql: string,
    range: readonly (string | number)[],
    others: readonly (string | null)[] = [],
  ): Promise<Page<Row>> {
    const parameters = [...range, MAX_PAGE_BYTES, ...others];
    const rows = await this.dataSource.query<(Row & { candidates: string })[]>(sql, parameters);
    const last = rows.at(-1);
    const hasMore = last !== undefined && Number(last.candidates) > rows.length;
    return { rows, next: hasMore ? last : null };
  }

  /** The write that an earlier request with this idempotency digest made. */
  findWriteByDigest(manager: EntityManager, idempotencyDigest: Buffer): Promise<RecordedWrite | null> {
    return manager.findOneBy(HistoryEntry, { idempotencyDigest });
  }

  /** The history entry `historyId` of the setting `key`; null when it does not exist or belongs to another setting. */
  findWriteById(manager: EntityManager, key: SettingKey, historyId: string): Promise<RecordedWrite | null> {
    return manager.findOneBy(HistoryEntry, {
      historyId,
      subsystemKey: key.subsystem.key,
      settingKey: key.setting.key,
    });
  }

  /**
   * The setting's revision, null when there is none. The lock matters although the transaction is REPEATABLE READ: without it a setting
   * deleted meanwhile would be created again by a write that was allowed only for the deleted revision.
   */
  async lockRevision(manager: EntityManager, key: SettingKey): Promise<Revision | null> {
    const rows = await manager.query<{ revision: Revision }[]>(LOCK_REVISION, [
      key.subsystem.key,
      key.setting.key,
    ]);
    return rows[0]?.revision ?? null;
  }

  /** Deletes the setting and records what it held, in one statement; null, and no history entry, when there is none. */
  async delete(manager: EntityManager, key: SettingKey, trail: AuditTrail): Promise<RecordedWrite | null> {
    const rows = await manager.query<RecordedWrite[]>(DELETE_SETTING, [
      ...[key.subsystem.key, key.setting.key],
      ...auditColumns(trail),
    ]);
    return rows[0] ?? null;
  }
}
