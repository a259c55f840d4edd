import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import type { DataSource } from 'typeorm';
import { REVOCATION_INSTANT } from '../audit/newest-issue';

const INTERVAL_MS = 1_000;
const PARTITIONS = ['revocation', 'session_revocation'] as const;

/**
 * SQL: true if a revocation is at most 10 s old. Every poll of a validator reads at least the revocations
 * dated within the last 30 s, so every validator reads a revocation that is visible at this age.
 */
const IN_TIME = `revocation_date > clock_timestamp() - interval '10 seconds'`;

const batch = (table: string, condition: string): string => `
  ${table}.ctid = ANY (ARRAY(
    SELECT ctid FROM auth.${table} WHERE NOT confirmed AND ${condition}
    ORDER BY revocation_date LIMIT 1000 FOR UPDATE SKIP LOCKED))`;

/**
 * Marks rows as confirmed. They keep their date, because they were committed while the date was recent
 * enough.
 */
const confirmStatement = (table: string): string => `
  UPDATE auth.${table} SET confirmed = true WHERE ${batch(table, IN_TIME)}`;

/**
 * Gives late rows a new date. They stay unconfirmed, because this commit may be late too: a later run
 * confirms or redates them.
 */
const redateStatement = (table: string): string => `
  UPDATE auth.${table} SET
    interrupts_at = CASE WHEN interrupts_at = revocation_date THEN present.at ELSE interrupts_at END,
    revocation_date = present.at
  FROM (${REVOCATION_INSTANT}) AS present
  WHERE ${batch(table, `NOT (${IN_TIME})`)}
  RETURNING 1`;

/**
 * Confirms revocations that were committed in time, and redates those committed so late that validators no
 * longer read their date, even if the request that wrote them has ended. Every replica handles the rows of
 * all replicas; rows locked by another one are skipped.
 */
@Injectable()
export class ConfirmRevocationsJob extends RecurringJob {
  private readonly late;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    metrics: Metrics,
  ) {
    super(INTERVAL_MS, metrics);
    this.late = metrics.counter('auth_late_revocations_total', 'Revocations dated anew after a late commit');
  }

  async run(): Promise<void> {
    for (const table of PARTITIONS) {
      await this.dataSource.query(confirmStatement(table));
      const [rows] = await this.dataSource.query<[unknown[], number]>(redateStatement(table));
      this.late.inc(rows.length);
    }
  }
}
