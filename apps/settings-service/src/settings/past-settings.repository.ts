import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import type { NamedEntry } from './history-entry.entity';
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

/** Which subsystem goes back to which instant. */
export interface SubsystemRestoration {
  readonly subsystemKey: string;
  readonly at: Date;
  /** For the history; null: it only says what would change. */
  readonly trail: AuditTrail | null;
}

/** What a part of a restoration changed; `last` leads to the next part, null after the last one. */
interface RestoredPart {
  readonly changes: readonly RestoredSetting[];
  readonly compared: number;
  readonly last: string | null;
}

interface ComparedSetting {
  readonly settingKey: string;
  readonly settingName: string;
  readonly operation: RestoredSetting['operation'] | null;
}

// Parameters that are null fall out when PostgreSQL plans the statement. The position is compared as a row.
const LIST_ENTRIES = pageStatement({
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

// The names that a subsystem has ever had, one after the other from the index, after `after`.
const names = (after: string): string => `
  name AS (
    (SELECT setting_key FROM settings.setting_history WHERE subsystem_key = $1 AND setting_key > ${after}
      ORDER BY setting_key LIMIT 1)
    UNION ALL
    SELECT (SELECT setting_key FROM settings.setting_history
             WHERE subsystem_key = $1 AND setting_key > name.setting_key ORDER BY setting_key LIMIT 1)
      FROM name WHERE name.setting_key IS NOT NULL
  )`;

// What each name held: nothing before its first write and after a delete.
const held = (key: string, instant: string): string => `LATERAL (
  SELECT * FROM (${newestBefore(`subsystem_key = $1 AND setting_key = ${key}`, instant)}) AS newest WHERE operation = 'write')`;

const LIST_SUBSYSTEM_BEFORE = pageStatement({
  table: `(WITH RECURSIVE ${names('$2')} SELECT past.* FROM name CROSS JOIN ${held('name.setting_key', '$5')} AS past LIMIT $3 + 1)`,
  columns: LISTED_SETTING_COLUMNS,
  range: 'true',
  order: 'setting_key',
});

const COMPARE_WITH_PAST = `
  WITH RECURSIVE ${names('$3')}
  SELECT name.setting_key AS "settingKey", coalesce(past.setting_name, present.setting_name) AS "settingName",
         CASE WHEN past.value_text IS NOT DISTINCT FROM present.value_text THEN NULL
              WHEN past.value_text IS NULL THEN 'delete' ELSE 'write' END AS operation
    FROM (SELECT * FROM name WHERE setting_key IS NOT NULL LIMIT $4) AS name
    LEFT JOIN ${held('name.setting_key', '$2')} AS past ON true
    LEFT JOIN LATERAL (SELECT * FROM settings.setting WHERE subsystem_key = $1 AND setting_key = name.setting_key LIMIT 1) AS present ON true
   ORDER BY name.setting_key`;

// The values never leave the database. Rows are locked in the order of their keys, so that no two writers wait for each other.
const RESTORE_SETTINGS = `
  WITH locked AS MATERIALIZED (
    SELECT FROM settings.setting WHERE subsystem_key = $1 AND setting_key = ANY ($3) ORDER BY setting_key FOR UPDATE
  ), target AS MATERIALIZED (
    SELECT k.setting_key, past.subsystem_name, past.setting_name, past.value_text
      FROM unnest($3::text[] COLLATE "C") AS k (setting_key) LEFT JOIN ${held('k.setting_key', '$2')} AS past ON true
     WHERE (SELECT count(*) FROM locked) IS NOT NULL
  ), deleted AS (
    DELETE FROM settings.setting
     WHERE subsystem_key = $1 AND setting_key = ANY (ARRAY(SELECT setting_key FROM target WHERE value_text IS NULL))
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, 'delete'
  ), written AS (
    INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
    SELECT $1, setting_key, subsystem_name, setting_name, value_text FROM target WHERE value_text IS NOT NULL ORDER BY setting_key
    ON CONFLICT (subsystem_key, setting_key) DO UPDATE SET value_text = excluded.value_text, revision = excluded.revision
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, 'write'
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation,
     person_id, user_id, person_name, persona, request_id, idempotency_digest)
  SELECT change.*, $4, $5, $6, $7, $8, $9 FROM (SELECT * FROM deleted UNION ALL SELECT * FROM written) AS change`;

/** Names that are compared, and settings that are restored, in one statement: a part of the time that a statement may take. */
const COMPARED = 1_000;

/** Settings as they were, and who changed them. Instants count in whole milliseconds, as they are shown: what happened within one counts. */
@Injectable()
export class PastSettingsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** History entries of all settings that `filter` lets through, newest first, older than the entry `before`. */
  listEntries(filter: HistoryFilter, pageSize: number, before: string | null): Promise<Page<NamedEntry>> {
    const { subsystemKey = null, personId = null, userId = null, from = null, to } = filter;
    const range = [subsystemKey, personId, pageSize];
    return readPage(this.dataSource, LIST_ENTRIES, range, [userId, from, to ? endOf(to) : null, before]);
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

  /**
   * Makes a thousand settings of a subsystem, those after `afterSettingKey`, what they were at `at`, with a history entry for each that
   * changes. `manager` has a transaction at REPEATABLE READ: what is compared is what is replaced.
   */
  async restorePart(
    manager: EntityManager,
    { subsystemKey, at, trail }: SubsystemRestoration,
    afterSettingKey: string,
  ): Promise<RestoredPart> {
    const position = [subsystemKey, endOf(at)];
    const compared = await manager.query<ComparedSetting[]>(COMPARE_WITH_PAST, [
      ...[...position, afterSettingKey, COMPARED],
    ]);
    const changes = compared.filter(isChange);
    if (trail !== null && changes.length > 0) {
      const keys = changes.map(({ settingKey }) => settingKey);
      // Restoring again does nothing: it needs no idempotency key, and all these entries could not share one.
      const columns = auditColumns({ ...trail, idempotencyKey: null });
      await manager.query(RESTORE_SETTINGS, [...position, keys, ...columns]);
    }
    const last = compared.length < COMPARED ? null : compared.at(-1)!.settingKey;
    return {
      changes: changes.map(({ settingName, operation }) => ({ settingName, operation })),
      ...{ compared: compared.length, last },
    };
  }
}

/** The first instant after the millisecond. */
function endOf(millisecond: Date): Date {
  return new Date(millisecond.getTime() + 1);
}

function isChange(compared: ComparedSetting): compared is ComparedSetting & RestoredSetting {
  return compared.operation !== null;
}
