import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import type { ListedChange } from './history-entry.entity';
import {
  LISTED_ENTRY_COLUMNS,
  LISTED_SETTING_COLUMNS,
  START,
  pageStatement,
  readPage,
} from './settings-page';
import type { Page } from './settings-page';
import type { SettingKey } from './setting-key';
import type { CurrentSetting, ListedSetting } from './setting.entity';
import { auditColumns } from './write-request';
import type { AuditTrail } from './write-request';

/** Which changes a list shows: those for which all that is given holds. */
export interface HistoryFilter {
  readonly subsystemKey: string | undefined;
  readonly personId: string | undefined;
  readonly userId: string | undefined;
  readonly from: Date | undefined;
  /** Inclusive. */
  readonly to: Date | undefined;
}

/** What a restored subsystem has anew, or no longer. */
export interface RestoredSetting {
  readonly settingName: string;
  readonly operation: 'write' | 'delete';
}

// Parameters that are null fall out when PostgreSQL plans the statement. The position is compared as a row.
const LIST_CHANGES = pageStatement({
  table: 'settings.setting_history',
  columns: `${LISTED_ENTRY_COLUMNS}, subsystem_name AS "subsystemName", setting_name AS "settingName"`,
  range: `($1::text IS NULL OR subsystem_key = $1) AND ($2::bigint IS NULL OR person_id = $2)
    AND ($5::bigint IS NULL OR user_id = $5)
    AND ($6::timestamptz IS NULL OR occurred_at >= $6) AND ($7::timestamptz IS NULL OR occurred_at < $7)
    AND ($8::bigint IS NULL OR (occurred_at, history_id) <
      ((SELECT occurred_at FROM settings.setting_history WHERE history_id = $8), $8))`,
  order: 'occurred_at DESC, history_id DESC',
});

// The newest entry of a setting before an instant is found from the end of its history. So that a long history after the instant is not
// passed over entry by entry, it begins at an identifier that no entry before the instant exceeds: identifiers are drawn a moment before
// the time is noted, so among a hundred neighbours one is as high.
const newestBefore = (key: string, instant: string): string => `
  SELECT * FROM settings.setting_history
   WHERE ${key} AND occurred_at < ${instant} AND history_id <=
     (SELECT max(history_id) FROM (SELECT history_id FROM settings.setting_history WHERE occurred_at < ${instant}
        ORDER BY occurred_at DESC, history_id DESC LIMIT 100) AS neighbours)
   ORDER BY history_id DESC LIMIT 1`;

// (SELECT $2): knowing which setting it is, the planner takes one that was written often for easy to meet among all entries.
const FIND_BEFORE = `
  SELECT subsystem_name AS "subsystemName", setting_name AS "settingName", value_text AS "valueText", revision
    FROM (${newestBefore('subsystem_key = $1 AND setting_key = (SELECT $2)', '$3')}) AS newest
   WHERE operation = 'write'`;

// The settings of a subsystem as they were: its names one after the other from the index, each with its newest entry.
const past = (instant: string, after: string): string => `
  WITH RECURSIVE name AS (
    (SELECT setting_key FROM settings.setting_history WHERE subsystem_key = $1 AND setting_key > ${after}
      ORDER BY setting_key LIMIT 1)
    UNION ALL
    SELECT (SELECT setting_key FROM settings.setting_history
             WHERE subsystem_key = $1 AND setting_key > name.setting_key ORDER BY setting_key LIMIT 1)
      FROM name WHERE name.setting_key IS NOT NULL
  )
  SELECT newest.* FROM name CROSS JOIN LATERAL
    (${newestBefore('subsystem_key = $1 AND setting_key = name.setting_key', instant)}) AS newest
   WHERE newest.operation = 'write'`;

const LIST_SUBSYSTEM_BEFORE = pageStatement({
  table: `(${past('$5', '$2')} LIMIT $3 + 1)`,
  columns: LISTED_SETTING_COLUMNS,
  range: 'true',
  order: 'setting_key',
});

const LOCK_SUBSYSTEM = `
  SELECT count(*) FROM (SELECT FROM settings.setting WHERE subsystem_key = $1 ORDER BY setting_key FOR UPDATE) AS locked`;

const DIFFERENCE = `
  difference AS MATERIALIZED (
    SELECT p.value_text IS NULL AS is_gone, coalesce(p.setting_key, s.setting_key) AS setting_key, p.value_text,
           coalesce(p.subsystem_name, s.subsystem_name) AS subsystem_name, coalesce(p.setting_name, s.setting_name) AS setting_name
      FROM (${past('$2', `'${START}'`)}) AS p
      FULL JOIN (SELECT * FROM settings.setting WHERE subsystem_key = $1) AS s ON s.setting_key = p.setting_key
     WHERE p.value_text IS DISTINCT FROM s.value_text)`;

const COMPARE_WITH_PAST = `
  WITH ${DIFFERENCE}
  SELECT setting_name AS "settingName", CASE WHEN is_gone THEN 'delete' ELSE 'write' END AS operation
    FROM difference ORDER BY setting_key`;

// One statement, whatever the number of settings: their values never leave the database.
const RESTORE_SUBSYSTEM = `
  WITH ${DIFFERENCE}, deleted AS (
    DELETE FROM settings.setting WHERE subsystem_key = $1 AND setting_key IN (SELECT setting_key FROM difference WHERE is_gone)
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, 'delete'
  ), written AS (
    INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
    SELECT $1, setting_key, subsystem_name, setting_name, value_text FROM difference WHERE NOT is_gone ORDER BY setting_key
    ON CONFLICT (subsystem_key, setting_key) DO UPDATE SET value_text = excluded.value_text, revision = excluded.revision
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, 'write'
  ), recorded AS (
    INSERT INTO settings.setting_history
      (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation,
       person_id, user_id, person_name, persona, request_id, idempotency_digest)
    SELECT change.*, $3, $4, $5, $6, $7, $8 FROM (SELECT * FROM deleted UNION ALL SELECT * FROM written) AS change
    RETURNING setting_key, setting_name, operation
  )
  SELECT setting_name AS "settingName", operation FROM recorded ORDER BY setting_key`;

/** Settings as they were, and who changed them. Instants count in whole milliseconds, as they are shown: what happened within one counts. */
@Injectable()
export class PastSettingsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Changes of all settings that `filter` lets through, newest first, older than the entry `before`. */
  listChanges(filter: HistoryFilter, pageSize: number, before: string | null): Promise<Page<ListedChange>> {
    const { subsystemKey = null, personId = null, userId = null, from = null, to } = filter;
    const range = [subsystemKey, personId, pageSize];
    return readPage(this.dataSource, LIST_CHANGES, range, [userId, from, to ? endOf(to) : null, before]);
  }

  /** The setting as it was at `at`; null if there was none. */
  async findAt(key: SettingKey, at: Date): Promise<CurrentSetting | null> {
    const parameters = [key.subsystem.key, key.setting.key, endOf(at)];
    const rows = await this.dataSource.query<CurrentSetting[]>(FIND_BEFORE, parameters);
    return rows[0] ?? null;
  }

  /** The settings of a subsystem as they were at `at`, after `afterSettingKey` or from the start. */
  listSubsystemAt(
    subsystemKey: string,
    at: Date,
    pageSize: number,
    afterSettingKey: string | null,
  ): Promise<Page<ListedSetting>> {
    const range = [subsystemKey, afterSettingKey ?? START, pageSize];
    return readPage(this.dataSource, LIST_SUBSYSTEM_BEFORE, range, [endOf(at)]);
  }

  /** What restoring the subsystem to `at` would change now. */
  compareWithPast(subsystemKey: string, at: Date): Promise<RestoredSetting[]> {
    return this.dataSource.query(COMPARE_WITH_PAST, [subsystemKey, endOf(at)]);
  }

  /** Makes the subsystem what it was at `at`, with a history entry for each setting that changes. */
  async restoreSubsystem(
    manager: EntityManager,
    subsystemKey: string,
    at: Date,
    trail: AuditTrail,
  ): Promise<RestoredSetting[]> {
    await manager.query(LOCK_SUBSYSTEM, [subsystemKey]);
    return manager.query(RESTORE_SUBSYSTEM, [subsystemKey, endOf(at), ...auditColumns(trail)]);
  }
}

/** The first instant after the millisecond. */
function endOf(millisecond: Date): Date {
  return new Date(millisecond.getTime() + 1);
}
