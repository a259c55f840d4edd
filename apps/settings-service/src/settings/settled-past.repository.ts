import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

/** A transaction that may write to the history. */
interface HistoryWriter {
  readonly writer: string;
  /** Null where this role may not see it. */
  readonly startedAt: Date | null;
}

/** Who may be writing to the history. */
export interface PastLook {
  /** The database's time from before the writers were looked for. */
  readonly now: Date;
  /** Up to which instant the database keeps the past settled, in milliseconds. */
  readonly keptMs: number;
  readonly writers: readonly HistoryWriter[];
}

// A transaction that writes to the history holds this lock until others see what it wrote.
const FIND_WRITERS = `
  SELECT now() AS now, (SELECT last_value FROM settings.settled_ms) AS kept,
         writer.virtualtransaction AS writer, activity.xact_start AS "startedAt"
    FROM (SELECT) AS one
    LEFT JOIN pg_locks AS writer ON writer.relation = 'settings.setting_history'::regclass AND writer.mode = 'RowExclusiveLock'
      AND writer.granted AND writer.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    LEFT JOIN pg_stat_activity AS activity ON activity.pid = writer.pid`;

/** What the database knows of the instants at which nothing changes any more. */
@Injectable()
export class SettledPastRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Looks for those who may be writing to the history. */
  async look(): Promise<PastLook> {
    const rows =
      await this.dataSource.query<({ now: Date; kept: string } & (HistoryWriter | { writer: null }))[]>(
        FIND_WRITERS,
      );
    const writers = rows.flatMap((row) => (row.writer === null ? [] : [row]));
    const { now, kept } = rows[0]!;
    return { now, keptMs: Number(kept), writers };
  }

  /** Keeps later changes from being dated before an instant, whatever the clock of the database does. */
  async keepSettled(untilMs: number): Promise<void> {
    await this.dataSource.query('SELECT settings.settle($1)', [untilMs]);
  }
}
