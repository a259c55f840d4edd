import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { batched, isLockTimeout, listParameter, queryPrepared, readPreparedArrays } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { isWriteOf } from './history-entry.entity';
import type { RecordedWrite } from './history-entry.entity';
import type { SettingKey } from './setting-key';
import type { JsonText } from './setting-value';
import type { CurrentSetting } from './setting.entity';
import { SHORT_LOCK_WAIT_MS } from './slow-work';
import { AUDIT_COLUMNS, auditColumns, columnsOf } from './write-request';
import type { AuditTrail } from './write-request';

export interface SettingWrite {
  readonly key: SettingKey;
  readonly value: JsonText;
  readonly trail: AuditTrail;
}

type Row = [
  subsystemName: string,
  settingName: string,
  valueText: JsonText,
  revision: string,
  position?: string,
];

/**
 * The part of a RecordedWrite that the database returns. An existing setting keeps the spelling of its names.
 */
type WrittenRow = Omit<RecordedWrite, 'valueText' | 'operation'>;

const FIND_SETTING: PreparedStatement = {
  name: 'find-setting',
  text: `
  SELECT subsystem_name, setting_name, value_text, revision
    FROM settings.setting
   WHERE subsystem_key = $1 AND setting_key = $2`,
};

const FIND_SETTINGS: PreparedStatement = {
  name: 'find-settings',
  // The columns collate "C", so the parameters must too. LIMIT 1 makes each key an index lookup; without it,
  // a plan cached for a small table would join the keys with all rows of a large one.
  text: `
  SELECT s.subsystem_name, s.setting_name, s.value_text, s.revision, k.position
    FROM unnest(${listParameter(1, 'text')} COLLATE "C", $2::text[] COLLATE "C") WITH ORDINALITY AS k (subsystem_key, setting_key, position)
    CROSS JOIN LATERAL (SELECT * FROM settings.setting
      WHERE subsystem_key = k.subsystem_key AND setting_key = k.setting_key LIMIT 1) AS s`,
};

// Writes the settings and their history entries in one statement. It locks the rows in key order, so that two
// replicas cannot deadlock. ORDER BY needs all rows, so the entries draw their identifiers and timestamp
// after every row is locked.
const writeStatement = (name: string, free: string): PreparedStatement => ({
  name,
  text: `
  WITH request AS MATERIALIZED (
    SELECT r.* FROM unnest(${listParameter(1, 'text')} COLLATE "C", $2::text[] COLLATE "C", $3::text[], $4::text[], $5::text[],
      $6::bigint[], $7::bigint[], $8::text[], $9::smallint[], $10::text[], $11::bytea[], $12::bytea[])
      AS r (subsystem_key, setting_key, subsystem_name, setting_name, value_text, ${AUDIT_COLUMNS}) ${free}
     ORDER BY subsystem_key, setting_key
  ), written AS (
    INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
    SELECT subsystem_key, setting_key, subsystem_name, setting_name, value_text FROM request
    ON CONFLICT (subsystem_key, setting_key)
      DO UPDATE SET value_text = excluded.value_text, revision = excluded.revision
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation, ${AUDIT_COLUMNS})
  SELECT w.*, 'write', ${AUDIT_COLUMNS}
    FROM written w JOIN request r ON r.subsystem_key = w.subsystem_key AND r.setting_key = w.setting_key
   ORDER BY w.subsystem_key, w.setting_key
  RETURNING subsystem_key AS "subsystemKey", setting_key AS "settingKey",
    subsystem_name AS "subsystemName", setting_name AS "settingName", revision`,
});

/** Waits for rows locked by other transactions, at most $13 milliseconds for each; '0' means no limit. */
const WRITE_SETTINGS = writeStatement(
  'write-settings',
  `
     CROSS JOIN set_config('lock_timeout', $13, true)`,
);

// Skips settings whose row another transaction has locked. A setting that another transaction is creating has
// no visible row: its lock wait fails the statement after 20 ms (55P03), and each write of the batch is then
// sent separately.
const WRITE_FREE_SETTINGS = writeStatement(
  'write-free-settings',
  `
     CROSS JOIN set_config('lock_timeout', '20', true)
     LEFT JOIN LATERAL (SELECT true AS locked FROM settings.setting
       WHERE subsystem_key = r.subsystem_key AND setting_key = r.setting_key LIMIT 1 FOR UPDATE SKIP LOCKED) AS mine ON true
     WHERE mine.locked OR (SELECT true FROM settings.setting
       WHERE subsystem_key = r.subsystem_key AND setting_key = r.setting_key LIMIT 1) IS NULL`,
);

/**
 * The two hot paths: reads of one setting, and unconditional writes. Calls that arrive together share one
 * prepared statement, and writes share one commit. See docs/performance.md for the gain.
 */
@Injectable()
export class BatchedSettingsRepository {
  /** Returns the current setting, or null. */
  readonly find: (key: SettingKey) => Promise<CurrentSetting | null>;
  /**
   * Creates a setting or replaces its value, in a transaction shared by the batch. Returns null without
   * writing if another transaction has locked the setting. Must not be called for a setting while another
   * call for it is in progress.
   */
  readonly writeUnlessLocked: (write: SettingWrite) => Promise<RecordedWrite | null>;

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    this.find = batched((keys) => this.findAll(keys));
    this.writeUnlessLocked = batched((writes) => this.writeAllUnlessLocked(writes));
  }

  /**
   * Returns the current settings in the order of `keys`, null for those that do not exist. One round trip.
   */
  async findAll(keys: readonly SettingKey[]): Promise<(CurrentSetting | null)[]> {
    const rows = await this.findRows(keys);
    const found = keys.map((): CurrentSetting | null => null);
    for (const [subsystemName, settingName, valueText, revision, position = '1'] of rows) {
      found[Number(position) - 1] = { subsystemName, settingName, valueText, revision };
    }
    return found;
  }

  private findRows(keys: readonly SettingKey[]): Promise<Row[]> {
    const subsystemKeys = keys.map(({ subsystem }) => subsystem.key);
    const settingKeys = keys.map(({ setting }) => setting.key);
    return keys.length === 1
      ? readPreparedArrays<Row>(this.dataSource, FIND_SETTING, [subsystemKeys[0], settingKeys[0]])
      : readPreparedArrays<Row>(this.dataSource, FIND_SETTINGS, [subsystemKeys, settingKeys]);
  }

  private async writeAllUnlessLocked(writes: readonly SettingWrite[]): Promise<(RecordedWrite | null)[]> {
    const [first] = writes;
    if (writes.length === 1) return [await this.writeOneUnlessLocked(first!)];
    const columns = writeColumns(writes);
    const rows = await queryPrepared<WrittenRow>(this.dataSource, WRITE_FREE_SETTINGS, columns);
    return writes.map((write) => recordedWrite(rows, write));
  }

  private async writeOneUnlessLocked(write: SettingWrite): Promise<RecordedWrite | null> {
    try {
      return await this.writeOne(write, SHORT_LOCK_WAIT_MS);
    } catch (error) {
      if (isLockTimeout(error)) return null;
      throw error;
    }
  }

  /** Like `writeAll`, for one setting. */
  async writeOne(write: SettingWrite, lockWaitMs: number): Promise<RecordedWrite> {
    const [recorded] = await this.writeAll([write], lockWaitMs);
    return recorded!;
  }

  /**
   * Creates settings, or replaces their values and keeps the spelling of their names, and records the writes
   * in the same statement. The keys must be distinct. Runs in its own transaction unless `database` is the
   * manager of one.
   * @param lockWaitMs longest wait for each row, also in the rest of that transaction; 0 means no limit
   */
  async writeAll(
    writes: readonly SettingWrite[],
    lockWaitMs: number,
    database: DataSource | EntityManager = this.dataSource,
  ): Promise<RecordedWrite[]> {
    const values = [...writeColumns(writes), String(lockWaitMs)];
    const rows = await queryPrepared<WrittenRow>(database, WRITE_SETTINGS, values);
    return writes.map((write) => {
      const recorded = recordedWrite(rows, write);
      if (recorded === null) throw new Error('an upsert with RETURNING returned no row');
      return recorded;
    });
  }
}

/** Returns the recorded write; null if the rows do not contain its setting. */
function recordedWrite(rows: readonly WrittenRow[], { key, value }: SettingWrite): RecordedWrite | null {
  const row = rows.find((each) => isWriteOf(each, key));
  return row === undefined ? null : { ...row, valueText: value, operation: 'write' };
}

function writeColumns(writes: readonly SettingWrite[]): unknown[][] {
  const rows = writes.map(({ key: { subsystem, setting }, value, trail }) => [
    subsystem.key,
    setting.key,
    subsystem.name,
    setting.name,
    value,
    ...auditColumns(trail),
  ]);
  return columnsOf(rows);
}
