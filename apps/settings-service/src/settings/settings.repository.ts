import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, In } from 'typeorm';
import type { EntityManager } from 'typeorm';
import type { Revision } from '@platform/service-defaults';
import { HistoryEntry, isWriteOf } from './history-entry.entity';
import type { EarlierWrite, ListedEntry, RecordedWrite } from './history-entry.entity';
import { largeReadsOf } from './large-reads';
import type { SettingKey } from './setting-key';
import {
  LISTED_ENTRY_COLUMNS,
  LISTED_SETTING_COLUMNS,
  START,
  pageStatement,
  readPage,
} from './settings-page';
import type { Page } from './settings-page';
import type { FoundSetting, ListPosition, ListedSetting } from './setting.entity';
import { AUDIT_COLUMNS, auditColumns, columnsOf } from './write-request';
import type { AuditTrail } from './write-request';

interface SettingDeletion {
  readonly key: SettingKey;
  readonly trail: AuditTrail;
}

type FoundRow = NonNullable<FoundSetting> & { readonly position: string };

/** The columns of a RecordedWrite, for RETURNING. */
const RECORDED_WRITE_COLUMNS = `subsystem_key AS "subsystemKey", setting_key AS "settingKey",
    subsystem_name AS "subsystemName", setting_name AS "settingName", value_text AS "valueText", operation, revision`;

// LIMIT 1 makes each key an index lookup. `octet_length` reads sizes without reading the values. One
// statement reads one snapshot.
const FIND_MANY = `
  SELECT subsystem_name AS "subsystemName", setting_name AS "settingName", revision, position,
         CASE WHEN bytes = bytes_so_far OR bytes_so_far <= $3 THEN value_text END AS "valueText"
    FROM (SELECT s.*, k.position, octet_length(value_text) AS bytes,
                 sum(octet_length(value_text)) OVER (ORDER BY position) AS bytes_so_far
            FROM unnest($1::text[] COLLATE "C", $2::text[] COLLATE "C") WITH ORDINALITY AS k (subsystem_key, setting_key, position)
            CROSS JOIN LATERAL (SELECT * FROM settings.setting
              WHERE subsystem_key = k.subsystem_key AND setting_key = k.setting_key LIMIT 1) AS s) AS found`;

// Locks the rows in key order; LIMIT 1 makes each key an index lookup. $3 is the lock timeout for the rest of
// the transaction.
const LOCK_REVISIONS = `
  SELECT k.subsystem_key AS "subsystemKey", k.setting_key AS "settingKey", s.revision
    FROM (SELECT k.* FROM unnest($1::text[] COLLATE "C", $2::text[] COLLATE "C") AS k (subsystem_key, setting_key)
           CROSS JOIN set_config('lock_timeout', $3, true)
           ORDER BY subsystem_key, setting_key) AS k
    CROSS JOIN LATERAL (SELECT revision FROM settings.setting
      WHERE subsystem_key = k.subsystem_key AND setting_key = k.setting_key LIMIT 1 FOR UPDATE) AS s`;

const DELETE_SETTINGS = `
  WITH deleted AS (
    DELETE FROM settings.setting AS s
     USING unnest($1::text[] COLLATE "C", $2::text[] COLLATE "C", $3::bigint[], $4::bigint[], $5::text[],
       $6::smallint[], $7::text[], $8::bytea[], $9::bytea[]) AS r (subsystem_key, setting_key, ${AUDIT_COLUMNS})
     WHERE s.subsystem_key = r.subsystem_key AND s.setting_key = r.setting_key
    RETURNING s.subsystem_key, s.setting_key, subsystem_name, setting_name, value_text, revision, ${AUDIT_COLUMNS}
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, ${AUDIT_COLUMNS}, operation)
  SELECT deleted.*, 'delete' FROM deleted ORDER BY subsystem_key, setting_key
  RETURNING ${RECORDED_WRITE_COLUMNS}`;

const SETTINGS = {
  table: 'settings.setting',
  columns: LISTED_SETTING_COLUMNS,
  order: 'subsystem_key, setting_key',
};
const LIST_ALL = pageStatement({ ...SETTINGS, range: '(subsystem_key, setting_key) > ($1, $2)' });
const LIST_SUBSYSTEM = pageStatement({ ...SETTINGS, range: 'subsystem_key = $1 AND setting_key > $2' });
const FIND_NEXT_NAMES = `
  SELECT subsystem_key AS "subsystemKey", setting_key AS "settingKey",
         subsystem_name AS "subsystemName", setting_name AS "settingName"
    FROM settings.setting
   WHERE (subsystem_key, setting_key) > ($1, $2) AND ($3::text IS NULL OR subsystem_key = $3)
   ORDER BY subsystem_key, setting_key LIMIT 1`;
// (SELECT $2) hides the value from the planner. With the value, the planner assumes that a frequently written
// setting is found early, and scans all entries.
const LIST_HISTORY = pageStatement({
  table: 'settings.setting_history',
  columns: LISTED_ENTRY_COLUMNS,
  range: 'subsystem_key = $1 AND setting_key = (SELECT $2) AND ($5::bigint IS NULL OR history_id < $5)',
  order: 'history_id DESC',
});

/**
 * Reads and deletes settings, and lists their history. `caller` is the caller whose share of large reads a
 * list counts against. The hot paths are in `BatchedSettingsRepository`.
 */
@Injectable()
export class SettingsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Lists the settings of all subsystems after `after`, or from the start. */
  listAll(caller: string, pageSize: number, after: ListPosition | null): Promise<Page<ListedSetting>> {
    return readPage(this.dataSource, caller, LIST_ALL, [
      after?.subsystemKey ?? START,
      after?.settingKey ?? START,
      pageSize,
    ]);
  }

  /**
   * Lists the settings of one subsystem after `afterSettingKey`, or from the start. Empty for a subsystem
   * without settings.
   */
  listSubsystem(
    caller: string,
    subsystemKey: string,
    pageSize: number,
    afterSettingKey: string | null,
  ): Promise<Page<ListedSetting>> {
    const range = [subsystemKey, afterSettingKey ?? START, pageSize];
    return readPage(this.dataSource, caller, LIST_SUBSYSTEM, range);
  }

  /**
   * Returns the names of the first setting after `after`, in one subsystem or in all. Does not read values.
   */
  async findNextNames(
    subsystemKey: string | null,
    after: ListPosition | null,
  ): Promise<Omit<ListedSetting, 'valueText'> | null> {
    const rows = await this.dataSource.query<Omit<ListedSetting, 'valueText'>[]>(FIND_NEXT_NAMES, [
      after?.subsystemKey ?? subsystemKey ?? START,
      after?.settingKey ?? START,
      subsystemKey,
    ]);
    return rows[0] ?? null;
  }

  /**
   * Lists the history entries of one setting that are older than `before`, newest first; also after the
   * setting was deleted.
   */
  listHistory(
    caller: string,
    key: SettingKey,
    pageSize: number,
    before: string | null,
  ): Promise<Page<ListedEntry>> {
    const range = [key.subsystem.key, key.setting.key, pageSize];
    return readPage(this.dataSource, caller, LIST_HISTORY, range, [before]);
  }

  /** Reads these settings in one snapshot. The result has the order of `keys`. */
  async findMany(caller: string, keys: readonly SettingKey[]): Promise<FoundSetting[]> {
    const columns = [keys.map(({ subsystem }) => subsystem.key), keys.map(({ setting }) => setting.key)];
    const rows = await largeReadsOf(this.dataSource).read(
      caller,
      (bytes) => this.dataSource.query<FoundRow[]>(FIND_MANY, [...columns, bytes]),
      (found) => found.some(({ valueText }) => valueText === null),
    );
    const found = new Map(rows.map((row) => [Number(row.position), row]));
    return keys.map((_key, index) => found.get(index + 1) ?? null);
  }

  /**
   * Returns the writes of earlier requests with these idempotency digests, in the order of `digests`; null
   * for a new digest.
   */
  async findWritesByDigests(
    manager: EntityManager,
    digests: readonly Buffer[],
  ): Promise<(EarlierWrite | null)[]> {
    if (digests.length === 0) return [];
    const entries = await manager.findBy(HistoryEntry, { idempotencyDigest: In([...digests]) });
    return digests.map((digest) => entries.find((each) => each.idempotencyDigest?.equals(digest)) ?? null);
  }

  /**
   * Returns the history entry `historyId` of the setting `key`; null if it does not exist or belongs to
   * another setting.
   */
  findWriteById(manager: EntityManager, key: SettingKey, historyId: string): Promise<RecordedWrite | null> {
    return manager.findOneBy(HistoryEntry, {
      historyId,
      subsystemKey: key.subsystem.key,
      settingKey: key.setting.key,
    });
  }

  /**
   * Locks the settings and returns their revisions; null for a setting that does not exist. The locks are
   * necessary even at REPEATABLE READ: without them, a concurrently deleted setting would be created again by
   * a write that was conditional on the deleted revision.
   * @param lockWaitMs longest wait for each lock in the rest of the transaction
   */
  async lockRevisions(
    manager: EntityManager,
    keys: readonly SettingKey[],
    lockWaitMs: number,
  ): Promise<(Revision | null)[]> {
    const rows = await manager.query<
      (Pick<RecordedWrite, 'subsystemKey' | 'settingKey'> & { revision: Revision })[]
    >(LOCK_REVISIONS, [
      keys.map(({ subsystem }) => subsystem.key),
      keys.map(({ setting }) => setting.key),
      String(lockWaitMs),
    ]);
    return keys.map((key) => rows.find((row) => isWriteOf(row, key))?.revision ?? null);
  }

  /**
   * Deletes the settings that exist and records the deleted values, in one statement. The result has the
   * order of `deletions`; null for a setting that did not exist.
   */
  async deleteAll(
    manager: EntityManager,
    deletions: readonly SettingDeletion[],
  ): Promise<(RecordedWrite | null)[]> {
    const columns = columnsOf(
      deletions.map(({ key, trail }) => [key.subsystem.key, key.setting.key, ...auditColumns(trail)]),
    );
    const recorded = await manager.query<RecordedWrite[]>(DELETE_SETTINGS, columns);
    return deletions.map(({ key }) => recorded.find((each) => isWriteOf(each, key)) ?? null);
  }
}
