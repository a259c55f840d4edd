import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { DataSource } from 'typeorm';
import type { Change, PollResult, Position, PollQuery } from './change-log';

type ChangeRow = Omit<Change, 'id'> & { readonly id: string };
interface HorizonRow {
  readonly xmin: string;
  readonly nextXid: string;
  readonly writersFrom: string | null;
}

const COLUMNS = `history_id AS id, subsystem_key AS "subsystemKey", subsystem_name AS "subsystemName",
    setting_name AS "settingName", operation, revision, occurred_at AS "occurredAt"`;

// Hand-written SQL: changes and transaction horizon must come from one snapshot.
//
// pg_snapshot_xmax is one above the highest finished transaction, so transactions with that id or higher may
// be running. age() of it is the distance to the next id to be assigned.
//
// A writer of the history holds a RowExclusiveLock on it until its transaction ends; that lock identifies it
// among all transactions of the cluster. A 32-bit transaction id from pg_locks is widened to 64 bits by its
// signed distance from xmax, because the writer may have begun after the snapshot.
const POLL: PreparedStatement = {
  name: 'poll-changes',
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

// Hand-written SQL: the UNION makes both ranges of the primary key index scans.
const FIND_AFTER = `
  SELECT ${COLUMNS} FROM settings.setting_history WHERE history_id = ANY ($2::bigint[])
  UNION ALL
  (SELECT ${COLUMNS} FROM settings.setting_history WHERE history_id > $1 AND history_id <= $3 ORDER BY history_id LIMIT $4)
  ORDER BY id LIMIT $4`;

const FIND_ALL = `SELECT ${COLUMNS} FROM settings.setting_history WHERE history_id = ANY ($1::bigint[])`;

const FIND_LATEST = `
  SELECT ${COLUMNS} FROM settings.setting_history WHERE history_id <= $1 ORDER BY history_id DESC LIMIT $2`;

/** Maximum new changes that one poll reads. */
export const POLL_ROW_LIMIT = 5_000;

/** Reads the history as a sequence of changes. */
@Injectable()
export class ChangesRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /**
   * Reads the changes of the query and the transaction horizon in one snapshot.
   * @param includesWriters whether to read which transactions write to the history; needed for gaps that do
   *   not close
   */
  async poll(
    { upTo, ids }: PollQuery,
    { includesWriters, limit = POLL_ROW_LIMIT }: { includesWriters: boolean; limit?: number },
  ): Promise<PollResult> {
    const rows = await queryPrepared<HorizonRow & (ChangeRow | { id: null })>(this.dataSource, POLL, [
      upTo,
      ids,
      limit,
      includesWriters,
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
   * Returns the changes that a reader at `position` has not seen: those after it up to `upTo`, and those that
   * were open, by ascending identifier.
   */
  async findAfter(position: Position, upTo: number, limit: number): Promise<Change[]> {
    const values = [position.upTo, position.open, upTo, limit];
    return (await this.dataSource.query<ChangeRow[]>(FIND_AFTER, values)).map(changeOf);
  }

  /** Returns the changes with these identifiers. */
  async findAll(ids: readonly number[]): Promise<Change[]> {
    return (await this.dataSource.query<ChangeRow[]>(FIND_ALL, [ids])).map(changeOf);
  }

  /** Returns the latest changes up to `upTo`, by ascending identifier. */
  async findLatest(upTo: number, limit: number): Promise<Change[]> {
    return (await this.dataSource.query<ChangeRow[]>(FIND_LATEST, [upTo, limit])).map(changeOf).reverse();
  }

  /** Returns the highest committed identifier; 0 if there is none. */
  async findEnd(): Promise<number> {
    const [row] = await this.dataSource.query<{ end: string | null }[]>(
      'SELECT max(history_id) AS "end" FROM settings.setting_history',
    );
    return Number(row?.end ?? 0);
  }
}

// A Number holds the identifier exactly: 2^53 is nine quadrillion changes.
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
