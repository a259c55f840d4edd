import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

/** A transaction that may write to the history. */
interface HistoryWriter {
  readonly writer: string;
  /** Start of the transaction; null if this role may not see it. */
  readonly startedAt: Date | null;
}

/** The transactions that may be writing to the history. */
export interface WriterSnapshot {
  /** The database's time, read before the writers. */
  readonly now: Date;
  /** The settled time in milliseconds that the database has stored. */
  readonly persistedMs: number;
  readonly writers: readonly HistoryWriter[];
}

// A transaction that writes to the history holds this lock until its entries are visible to others.
const FIND_WRITERS = `
  SELECT now() AS now, (SELECT last_value FROM settings.settled_ms) AS kept,
         writer.virtualtransaction AS writer, activity.xact_start AS "startedAt"
    FROM (SELECT) AS one
    LEFT JOIN pg_locks AS writer ON writer.relation = 'settings.setting_history'::regclass AND writer.mode = 'RowExclusiveLock'
      AND writer.granted AND writer.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    LEFT JOIN pg_stat_activity AS activity ON activity.pid = writer.pid`;

/** Reads and stores up to which instant the history can no longer change. */
@Injectable()
export class SettledPastRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Reads the transactions that may be writing to the history. */
  async readWriters(): Promise<WriterSnapshot> {
    const rows =
      await this.dataSource.query<({ now: Date; kept: string } & (HistoryWriter | { writer: null }))[]>(
        FIND_WRITERS,
      );
    const writers = rows.flatMap((row) => (row.writer === null ? [] : [row]));
    const { now, kept } = rows[0]!;
    return { now, persistedMs: Number(kept), writers };
  }

  /**
   * Stores the settled time, so that no later change gets an earlier timestamp, whatever the database's clock
   * does.
   */
  async persistSettled(untilMs: number): Promise<void> {
    await this.dataSource.query('SELECT settings.settle($1)', [untilMs]);
  }
}
