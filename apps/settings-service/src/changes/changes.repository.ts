import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { DataSource } from 'typeorm';
import type { Change, Look, Position, Question } from './change-log';

type ChangeRow = Omit<Change, 'id'> & { readonly id: string };
interface HorizonRow {
  readonly xmin: string;
  readonly nextXid: string;
  readonly writersFrom: string | null;
}

const COLUMNS = `history_id AS id, subsystem_key AS "subsystemKey", subsystem_name AS "subsystemName",
    setting_name AS "settingName", operation, revision, occurred_at AS "occurredAt"`;

// Hand-written SQL: changes and horizon must come from one snapshot. A snapshot's xmax lies behind the
// transactions that have ended, so one with that id or a higher one may be under way: age() counts up to the
// id that nobody has yet. Whoever writes to the history holds a lock on it until its transaction has ended,
// and this lock tells it from other transactions of the cluster. A 32-bit transaction id is placed by its
// signed distance from the next one: a writer may have begun since the snapshot.
const LOOK: PreparedStatement = {
  name: 'look-for-changes',
  text: `
  SELECT horizon.*, change.*
    FROM (SELECT pg_snapshot_xmin(s)::text AS xmin, (x + age(pg_snapshot_xmax(s)::xid))::text AS "nextXid",
                 CASE WHEN $4 THEN (
                   SELECT least(x, min(x - (((x - writer.transactionid::text::bigint + 2147483648) & 4294967295) - 2147483648)))::text
                     FROM pg_locks AS writer
                    WHERE writer.locktype = 'transactionid' AND writer.mode = 'ExclusiveLock' AND writer.virtualtransaction IN (
                      SELECT virtualtransaction FROM pg_locks
                       WHERE relation = 'settings.setting_history'::regclass AND mode = 'RowExclusiveLock'
                         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())))
                 END AS "writersFrom"
            FROM (SELECT s, pg_snapshot_xmax(s)::text::bigint AS x FROM pg_current_snapshot() AS s) AS snapshot) AS horizon
    LEFT JOIN LATERAL (
      SELECT ${COLUMNS} FROM settings.setting_history WHERE history_id = ANY ($2::bigint[])
      UNION ALL
      (SELECT ${COLUMNS} FROM settings.setting_history WHERE history_id > $1 ORDER BY history_id LIMIT $3)
    ) AS change ON true
   ORDER BY change.id`,
};

// Hand-written SQL: two ranges of the primary key, each by the index.
const FIND_AFTER = `
  SELECT ${COLUMNS} FROM settings.setting_history WHERE history_id = ANY ($2::bigint[])
  UNION ALL
  (SELECT ${COLUMNS} FROM settings.setting_history WHERE history_id > $1 AND history_id <= $3 ORDER BY history_id LIMIT $4)
  ORDER BY id LIMIT $4`;

const FIND_ALL = `SELECT ${COLUMNS} FROM settings.setting_history WHERE history_id = ANY ($1::bigint[])`;

const FIND_LATEST = `
  SELECT ${COLUMNS} FROM settings.setting_history WHERE history_id <= $1 ORDER BY history_id DESC LIMIT $2`;

/** Changes that one look takes at most. */
export const LOOK_LIMIT = 5_000;

/** The history as a sequence of changes. */
@Injectable()
export class ChangesRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** The changes that are asked for, with the horizon of the transactions.
   *  @param asksWriters whether to find out who writes to the history: for gaps that do not close */
  async look(
    { upTo, ids }: Question,
    { asksWriters, limit = LOOK_LIMIT }: { asksWriters: boolean; limit?: number },
  ): Promise<Look> {
    const rows = await queryPrepared<HorizonRow & (ChangeRow | { id: null })>(this.dataSource, LOOK, [
      upTo,
      ids,
      limit,
      asksWriters,
    ]);
    const { xmin, nextXid, writersFrom } = rows[0]!;
    return {
      found: rows.flatMap((row) => (row.id === null ? [] : [changeOf(row)])),
      xmin: Number(xmin),
      nextXid: Number(nextXid),
      writersFrom: writersFrom === null ? null : Number(writersFrom),
    };
  }

  /**
   * Changes that a reader at `position` has not seen, up to `upTo` and those that were open, by rising
   * identifier.
   */
  async findAfter(position: Position, upTo: number, limit: number): Promise<Change[]> {
    const values = [position.upTo, position.open, upTo, limit];
    return (await this.dataSource.query<ChangeRow[]>(FIND_AFTER, values)).map(changeOf);
  }

  /** The changes that have these identifiers. */
  async findAll(ids: readonly number[]): Promise<Change[]> {
    return (await this.dataSource.query<ChangeRow[]>(FIND_ALL, [ids])).map(changeOf);
  }

  /** The latest changes up to `upTo`, by rising identifier. */
  async findLatest(upTo: number, limit: number): Promise<Change[]> {
    return (await this.dataSource.query<ChangeRow[]>(FIND_LATEST, [upTo, limit])).map(changeOf).reverse();
  }

  /** The highest identifier that is committed; 0 without any. */
  async findEnd(): Promise<number> {
    const [row] = await this.dataSource.query<{ end: string | null }[]>(
      'SELECT max(history_id) AS "end" FROM settings.setting_history',
    );
    return Number(row?.end ?? 0);
  }
}

// Identifiers pass 2^53 after nine quadrillion changes.
function changeOf({
  id,
  subsystemKey,
  subsystemName,
  settingName,
  operation,
  revision,
  occurredAt,
}: ChangeRow): Change {
  return { id: Number(id), subsystemKey, subsystemName, settingName, operation, revision, occurredAt };
}
