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
import type {
  ComparedPart,
  DifferentSetting,
  PastName,
  RestoredSetting,
  SubsystemRestoration,
} from './restoration';
import { AUDIT_COLUMNS, auditColumns } from './write-request';
import type { AuditTrail } from './write-request';

/** The filters of the history list. An entry must match all that are set. */
export interface HistoryFilter {
  readonly subsystemKey: string | undefined;
  readonly personId: string | undefined;
  readonly userId: string | undefined;
  readonly from: Date | undefined;
  /** Inclusive. */
  readonly to: Date | undefined;
}

interface ComparedSetting {
  readonly settingKey: string;
  readonly settingName: string;
  readonly operation: RestoredSetting['operation'] | null;
  readonly bytes: number | null;
}

/** The last entry of a page. */
type EntryPosition = Pick<NamedEntry, 'historyId'>;

// The planner drops the conditions whose parameter is null. The position is compared as a row, so that it is
// one index range.
const BY_TIME = `($6::timestamptz IS NULL OR occurred_at >= $6) AND ($7::timestamptz IS NULL OR occurred_at < $7)
    AND ($8::bigint IS NULL OR (occurred_at, history_id) <
      ((SELECT occurred_at FROM settings.setting_history WHERE history_id = $8), $8))`;
const BY_SUBSYSTEM_AND_AUTHOR = `($1::text IS NULL OR subsystem_key = $1) AND ($2::bigint IS NULL OR person_id = $2)
    AND ($5::bigint IS NULL OR user_id = $5)`;
const NEWEST_FIRST = 'occurred_at DESC, history_id DESC';
const NAMED_ENTRY_COLUMNS = `${LISTED_ENTRY_COLUMNS}, subsystem_name AS "subsystemName", setting_name AS "settingName"`;

const LIST_ENTRIES = pageStatement({
  table: 'settings.setting_history',
  columns: NAMED_ENTRY_COLUMNS,
  range: `${BY_SUBSYSTEM_AND_AUTHOR} AND ${BY_TIME}`,
  order: NEWEST_FIRST,
});

/**
 * Maximum entries that one page scans when the list has several filters, because no index covers a
 * combination of them.
 */
const MAX_SCANNED_ENTRIES = 10_000;
const SCAN_COLUMNS = { subsystem: 'subsystem_key', person: 'person_id', user: 'user_id' } as const;
type ScanColumn = keyof typeof SCAN_COLUMNS;

/**
 * Returns the SQL that finds the last entry that a page with several filters scans, using the index of one
 * filter. No row means that the page scans to the end.
 */
const scanEnd = (column: ScanColumn): string => `
  SELECT history_id AS "historyId"
    FROM settings.setting_history
   WHERE ${SCAN_COLUMNS[column]} = $1
     AND ($2::timestamptz IS NULL OR occurred_at >= $2) AND ($3::timestamptz IS NULL OR occurred_at < $3)
     AND ($4::bigint IS NULL OR (occurred_at, history_id) <
       ((SELECT occurred_at FROM settings.setting_history WHERE history_id = $4), $4))
   ORDER BY occurred_at DESC, history_id DESC OFFSET ${String(MAX_SCANNED_ENTRIES - 1)} LIMIT 1`;

/**
 * Returns the SQL of a page that ends at `scanEnd`. OFFSET 0 makes PostgreSQL scan the index of this filter,
 * whatever the other filters match.
 */
const listScanned = (column: ScanColumn, parameter: string): string =>
  pageStatement({
    table: `(SELECT * FROM settings.setting_history WHERE ${SCAN_COLUMNS[column]} = ${parameter} AND ${BY_TIME}
       AND ($9::bigint IS NULL OR (occurred_at, history_id) >=
         ((SELECT occurred_at FROM settings.setting_history WHERE history_id = $9), $9)) OFFSET 0)`,
    columns: NAMED_ENTRY_COLUMNS,
    range: BY_SUBSYSTEM_AND_AUTHOR,
    order: NEWEST_FIRST,
  });

const SCANS = {
  subsystem: { end: scanEnd('subsystem'), page: listScanned('subsystem', '$1') },
  person: { end: scanEnd('person'), page: listScanned('person', '$2') },
  user: { end: scanEnd('user'), page: listScanned('user', '$5') },
};

// The timestamps of one setting have the order of its identifiers, because a transaction sets its timestamp
// after it has locked the row.
const newestBefore = (key: string, instant: string): string => `
  SELECT * FROM settings.setting_history
   WHERE ${key} AND occurred_at < ${instant} ORDER BY occurred_at DESC, history_id DESC LIMIT 1`;

// (SELECT $2) hides the value from the planner. With the value, the planner assumes that a frequently written
// setting is found early, and scans all entries.
const FIND_BEFORE = `
  SELECT subsystem_name AS "subsystemName", setting_name AS "settingName", value_text AS "valueText", revision
    FROM (${newestBefore('subsystem_key = $1 AND setting_key = (SELECT $2)', '$3')}) AS newest
   WHERE operation = 'write'`;

// A loose index scan over all names that the subsystem has ever had, starting after `after`.
const names = (after: string): string => `
  name AS (
    (SELECT setting_key FROM settings.setting_history WHERE subsystem_key = $1 AND setting_key > ${after}
      ORDER BY setting_key LIMIT 1)
    UNION ALL
    SELECT (SELECT setting_key FROM settings.setting_history
             WHERE subsystem_key = $1 AND setting_key > name.setting_key ORDER BY setting_key LIMIT 1)
      FROM name WHERE name.setting_key IS NOT NULL
  )`;

// The setting of a name at an instant. No row before its first write and after a delete.
const pastSetting = (key: string, instant: string): string => `LATERAL (
  SELECT * FROM (${newestBefore(`subsystem_key = $1 AND setting_key = ${key}`, instant)}) AS newest WHERE operation = 'write')`;

/**
 * Maximum names that one page of the past scans. A subsystem may have had many names that no longer existed
 * at the instant.
 */
const MAX_SCANNED_NAMES = 5_000;

const LIST_SUBSYSTEM_BEFORE = pageStatement({
  table: `(WITH RECURSIVE ${names('$2')}
    SELECT past.* FROM (SELECT * FROM name WHERE setting_key IS NOT NULL LIMIT ${String(MAX_SCANNED_NAMES)}) AS name
     CROSS JOIN ${pastSetting('name.setting_key', '$5')} AS past LIMIT $3 + 1)`,
  columns: LISTED_SETTING_COLUMNS,
  range: 'true',
  order: 'setting_key',
});

const LAST_SCANNED_NAME = `
  WITH RECURSIVE ${names('$2')}
  SELECT setting_key AS "settingKey" FROM name WHERE setting_key IS NOT NULL OFFSET ${String(MAX_SCANNED_NAMES - 1)} LIMIT 1`;

const EXISTED_BEFORE = `
  WITH RECURSIVE ${names('$2')}
  SELECT max(name.setting_key) AS last, bool_or(past.operation IS NOT NULL) AS existed
    FROM (SELECT * FROM name WHERE setting_key IS NOT NULL LIMIT ${String(MAX_SCANNED_NAMES)}) AS name
    LEFT JOIN ${pastSetting('name.setting_key', '$3')} AS past ON true`;

const FIND_NEXT_NAME = `
  SELECT setting_key AS "settingKey", setting_name AS "settingName" FROM settings.setting_history
   WHERE subsystem_key = $1 AND setting_key > $2 ORDER BY setting_key, history_id DESC LIMIT 1`;

const COMPARE_WITH_PAST = `
  WITH RECURSIVE ${names('$3')}
  SELECT name.setting_key AS "settingKey", coalesce(past.setting_name, present.setting_name) AS "settingName",
         octet_length(coalesce(past.value_text, present.value_text)) AS bytes,
         CASE WHEN (past.subsystem_name, past.setting_name, past.value_text)
                     IS NOT DISTINCT FROM (present.subsystem_name, present.setting_name, present.value_text) THEN NULL
              WHEN past.value_text IS NULL THEN 'delete' ELSE 'write' END AS operation
    FROM (SELECT * FROM name WHERE setting_key IS NOT NULL LIMIT $4) AS name
    LEFT JOIN ${pastSetting('name.setting_key', '$2')} AS past ON true
    LEFT JOIN LATERAL (SELECT * FROM settings.setting WHERE subsystem_key = $1 AND setting_key = name.setting_key LIMIT 1) AS present ON true
   ORDER BY name.setting_key`;

// Locks in key order, so that two writers cannot deadlock.
const LOCK_SETTINGS = `
  SELECT count(*) FROM (SELECT FROM settings.setting
    WHERE subsystem_key = $1 AND setting_key = ANY ($2) ORDER BY setting_key FOR UPDATE) AS locked`;

// The values are copied inside the database. ORDER BY delays the history entries until all rows are written,
// so the timestamp is set after the last row is locked.
const RESTORE_SETTINGS = `
  WITH target AS MATERIALIZED (
    SELECT k.setting_key, past.subsystem_name, past.setting_name, past.value_text
      FROM unnest($3::text[] COLLATE "C") AS k (setting_key) LEFT JOIN ${pastSetting('k.setting_key', '$2')} AS past ON true
  ), deleted AS (
    DELETE FROM settings.setting
     WHERE subsystem_key = $1 AND setting_key = ANY (ARRAY(SELECT setting_key FROM target WHERE value_text IS NULL))
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, 'delete'
  ), written AS (
    INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
    SELECT $1, setting_key, subsystem_name, setting_name, value_text FROM target WHERE value_text IS NOT NULL ORDER BY setting_key
    ON CONFLICT (subsystem_key, setting_key) DO UPDATE SET value_text = excluded.value_text, revision = excluded.revision,
      subsystem_name = excluded.subsystem_name, setting_name = excluded.setting_name
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, 'write'
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation, ${AUDIT_COLUMNS})
  SELECT change.*, $4, $5, $6, $7, $8, $9, $10 FROM (SELECT * FROM deleted UNION ALL SELECT * FROM written) AS change
   ORDER BY setting_key`;

/**
 * Maximum number of settings that one statement compares, locks or restores, so that it ends well within the
 * statement timeout.
 */
export const COMPARE_BATCH = 1_000;
/**
 * Bytes of values after which a statement restores no further setting. The last setting may exceed the limit.
 */
const RESTORE_BATCH_BYTES = 8 * 1024 * 1024;

/**
 * Reads past values and the history of changes, and restores subsystems. Instants have whole milliseconds; an
 * instant includes every change within its millisecond.
 */
@Injectable()
export class PastSettingsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /**
   * Lists history entries that match `filter`, newest first, older than the entry `before`. With several
   * filters a page may be short or even empty before the end of the list, once it has scanned {@link
   * MAX_SCANNED_ENTRIES} entries.
   */
  async listEntries(
    caller: string,
    filter: HistoryFilter,
    pageSize: number,
    before: string | null,
  ): Promise<Page<NamedEntry, EntryPosition>> {
    const { subsystemKey = null, personId = null, userId = null, from = null, to } = filter;
    const range = [subsystemKey, personId, pageSize];
    const times = [from, to ? endOf(to) : null, before];
    const filters = Object.entries({ subsystem: subsystemKey, person: personId, user: userId });
    const activeFilters = filters.filter(([, value]) => value !== null) as [ScanColumn, string][];
    if (activeFilters.length < 2)
      return readPage<NamedEntry>(this.dataSource, caller, LIST_ENTRIES, range, [userId, ...times]);
    const { column, end } = await this.findScan(activeFilters, times);
    const moreParameters = [userId, ...times, end?.historyId ?? null];
    const page = await readPage<NamedEntry>(
      this.dataSource,
      caller,
      SCANS[column].page,
      range,
      moreParameters,
    );
    return { rows: page.rows, next: page.next ?? end };
  }

  /** Returns the setting as it was at `at`; null if it did not exist then. */
  async findAt(key: SettingKey, at: Date): Promise<CurrentSetting | null> {
    const parameters = [key.subsystem.key, key.setting.key, endOf(at)];
    const rows = await this.dataSource.query<CurrentSetting[]>(FIND_BEFORE, parameters);
    return rows[0] ?? null;
  }

  /**
   * Lists the settings of a subsystem as they were at `at`, after `afterSettingKey` or from the start. A page
   * may be short or even empty before the end of the list, once it has scanned {@link MAX_SCANNED_NAMES}
   * names.
   */
  async listSubsystemAt(
    caller: string,
    subsystemKey: string,
    at: Date,
    pageSize: number,
    afterSettingKey: string | null,
  ): Promise<Page<ListedSetting, Pick<ListedSetting, 'settingKey'>>> {
    const after = afterSettingKey ?? START;
    const page = await readPage<ListedSetting>(
      this.dataSource,
      caller,
      LIST_SUBSYSTEM_BEFORE,
      [subsystemKey, after, pageSize],
      [endOf(at)],
    );
    if (page.next !== null) return page;
    const [end] = await this.dataSource.query<{ settingKey: string }[]>(LAST_SCANNED_NAME, [
      subsystemKey,
      after,
    ]);
    const last = page.rows.at(-1);
    // A name created between the two statements moves `end` to an earlier name. The next page must still
    // start after the last row of this one.
    const isBehind =
      end !== undefined && last !== undefined && compareKeys(last.settingKey, end.settingKey) > 0;
    return { rows: page.rows, next: isBehind ? last : (end ?? null) };
  }

  /** Whether a subsystem had a setting at `at`. Does not read values. */
  async existedAt(subsystemKey: string, at: Date): Promise<boolean> {
    for (let after: string | null = START; after !== null;) {
      const rows: { last: string | null; existed: boolean | null }[] = await this.dataSource.query(
        EXISTED_BEFORE,
        [subsystemKey, after, endOf(at)],
      );
      const { last = null, existed = null } = rows[0] ?? {};
      if (existed === true) return true;
      after = last;
    }
    return false;
  }

  /** Returns the first name after `afterSettingKey` that the subsystem has ever had. Does not read values. */
  async findNextName(subsystemKey: string, afterSettingKey: string): Promise<PastName | null> {
    const rows = await this.dataSource.query<PastName[]>(FIND_NEXT_NAME, [subsystemKey, afterSettingKey]);
    return rows[0] ?? null;
  }

  /** Compares the next `count` names of a subsystem after `afterSettingKey` with their state at `at`. */
  async comparePart(
    manager: EntityManager,
    { subsystemKey, at }: Pick<SubsystemRestoration, 'subsystemKey' | 'at'>,
    afterSettingKey: string,
    count = COMPARE_BATCH,
  ): Promise<ComparedPart> {
    const parameters = [subsystemKey, endOf(at), afterSettingKey, count];
    const compared = await manager.query<ComparedSetting[]>(COMPARE_WITH_PAST, parameters);
    const different = compared.flatMap(({ operation, bytes, settingKey, settingName }) =>
      operation === null ? [] : [{ operation, settingKey, settingName, bytes: bytes ?? 0 }],
    );
    const last = compared.length < count ? null : compared.at(-1)!.settingKey;
    return { different, compared: compared.length, last };
  }

  /** Sets the lock timeout for the rest of the transaction. */
  async limitLockWaits(manager: EntityManager, lockWaitMs: number): Promise<void> {
    await manager.query("SELECT set_config('lock_timeout', $1, true)", [String(lockWaitMs)]);
  }

  /**
   * Restores settings of a subsystem to their state at `at`, with a history entry each. All rows are locked
   * before the first is written.
   * @param manager of the REPEATABLE READ transaction that compared the settings, so that exactly the
   *   compared state is replaced
   */
  async restoreAll(
    manager: EntityManager,
    { subsystemKey, at }: Pick<SubsystemRestoration, 'subsystemKey' | 'at'>,
    trail: AuditTrail,
    different: readonly DifferentSetting[],
  ): Promise<void> {
    for (let start = 0; start < different.length; start += COMPARE_BATCH) {
      const keys = different.slice(start, start + COMPARE_BATCH).map(({ settingKey }) => settingKey);
      await manager.query(LOCK_SETTINGS, [subsystemKey, keys]);
    }
    // No idempotency key: repeating a restoration changes nothing, and the entries could not share one
    // digest.
    const columns = auditColumns({ ...trail, idempotencyKey: null });
    for (const keys of boundedParts(different))
      await manager.query(RESTORE_SETTINGS, [subsystemKey, endOf(at), keys, ...columns]);
  }

  /**
   * Chooses the filter whose index one page scans, and the last entry to scan; `end` is null if the page
   * scans to the end.
   */
  private async findScan(
    activeFilters: readonly [ScanColumn, string][],
    times: readonly unknown[],
  ): Promise<{ column: ScanColumn; end: EntryPosition | null }> {
    let found: { column: ScanColumn; end: EntryPosition | null } | null = null;
    for (const [column, value] of activeFilters) {
      const [end = null] = await this.dataSource.query<EntryPosition[]>(SCANS[column].end, [value, ...times]);
      found = { column, end };
      if (end === null) break;
    }
    return found!;
  }
}

/** Splits the settings into batches that one statement can restore within the statement timeout. */
function* boundedParts(different: readonly DifferentSetting[]): Generator<string[]> {
  let [keys, bytes]: [string[], number] = [[], 0];
  for (const setting of different) {
    keys.push(setting.settingKey);
    bytes += setting.bytes;
    if (keys.length < COMPARE_BATCH && bytes < RESTORE_BATCH_BYTES) continue;
    yield keys;
    [keys, bytes] = [[], 0];
  }
  if (keys.length > 0) yield keys;
}

/** Compares keys in the order of `COLLATE "C"`. */
function compareKeys(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

/** Returns the first instant after the millisecond. */
function endOf(millisecond: Date): Date {
  return new Date(millisecond.getTime() + 1);
}
