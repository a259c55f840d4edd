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

/** What the database decides of a write: the names of a setting that was there keep their casing. */
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
  // The columns collate "C", and so must what they are compared with. LIMIT has each key looked up by itself:
  // a plan that was made for a small table joins the keys with all of a large one.
  text: `
  SELECT s.subsystem_name, s.setting_name, s.value_text, s.revision, k.position
    FROM unnest(${listParameter(1, 'text')} COLLATE "C", $2::text[] COLLATE "C") WITH ORDINALITY AS k (subsystem_key, setting_key, position)
    CROSS JOIN LATERAL (SELECT * FROM settings.setting
      WHERE subsystem_key = k.subsystem_key AND setting_key = k.setting_key LIMIT 1) AS s`,
};

// One statement for the settings and their history entries. It locks the rows in the order of their keys, so
// that two replicas never deadlock. ORDER BY needs all rows, so entries draw identifiers and note their
// instant after every row is locked.
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

/** Waits for rows that other transactions hold, $13 milliseconds for each; '0': without a limit. */
const WRITE_SETTINGS = writeStatement(
  'write-settings',
  `
     CROSS JOIN set_config('lock_timeout', $13, true)`,
);

// Leaves out settings whose row another transaction holds. One that another transaction is creating has no
// row to see: it fails the statement after a moment (55P03), and each of its writes is sent by itself.
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
 * The two hot paths: reads of one setting, and writes without a condition. Calls that arrive together share
 * one prepared statement, and writes one commit. docs/performance.md says what that gains.
 */
@Injectable()
export class BatchedSettingsRepository {
  /** The setting as it is now, or null. */
  readonly find: (key: SettingKey) => Promise<CurrentSetting | null>;
  /**
   * Creates a setting or replaces its value, in a transaction that the batch shares. Null: another
   * transaction holds the setting, and nothing was written. No two writes of one setting may be under way.
   */
  readonly writeUnlessLocked: (write: SettingWrite) => Promise<RecordedWrite | null>;

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    this.find = batched((keys) => this.findAll(keys));
    this.writeUnlessLocked = batched((writes) => this.writeAllUnlessLocked(writes));
  }

  /** Each of these settings as it is now, null where there is none; one round trip. */
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

  /** As `writeAll`. */
  async writeOne(write: SettingWrite, lockWaitMs: number): Promise<RecordedWrite> {
    const [recorded] = await this.writeAll([write], lockWaitMs);
    return recorded!;
  }

  /**
   * Creates settings of different keys, or replaces their values and keeps the casing of their names; records
   * them in the same statement. It is a transaction by itself unless it is given the manager of one.
   * @param lockWaitMs longest wait for each row, and for the rest of that transaction; 0: no limit
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
      if (recorded === null) throw new Error('an upsert with RETURNING gave no row');
      return recorded;
    });
  }
}

/** What became of a write; null if none of these rows is its setting's. */
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
