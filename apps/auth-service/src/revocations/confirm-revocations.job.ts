import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import type { DataSource } from 'typeorm';
import { REVOCATION_INSTANT } from '../token/newest-issue';

const INTERVAL_MS = 1_000;
const PARTITIONS = ['revocation', 'session_revocation'] as const;

/**
 * Validators read each time what is dated within the last 30 s at least. A revocation that was visible at
 * this age is read by all of them.
 */
const IN_TIME = `revocation_date > clock_timestamp() - interval '10 seconds'`;

const batch = (table: string, condition: string): string => `
  ${table}.ctid = ANY (ARRAY(
    SELECT ctid FROM auth.${table} WHERE NOT confirmed AND ${condition}
    ORDER BY revocation_date LIMIT 1000 FOR UPDATE SKIP LOCKED))`;

/** The date stays. The row was committed before this statement saw it, and then it was young enough. */
const confirmStatement = (table: string): string => `
  UPDATE auth.${table} SET confirmed = true WHERE ${batch(table, IN_TIME)}`;

/**
 * The row stays unconfirmed, because this commit may be late too: a later run confirms it or dates it anew
 * again.
 */
const dateAnewStatement = (table: string): string => `
  UPDATE auth.${table} SET
    interrupts_at = CASE WHEN interrupts_at = revocation_date THEN present.at ELSE interrupts_at END,
    revocation_date = present.at
  FROM (${REVOCATION_INSTANT}) AS present
  WHERE ${batch(table, `NOT (${IN_TIME})`)}
  RETURNING 1`;

/**
 * Puts revocations in force whose commit was so late that no validator reads their date any more, whether or
 * not the request that wrote them still waits. Any replica does it for all; rows that another has locked are
 * passed over.
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
      const [rows] = await this.dataSource.query<[unknown[], number]>(dateAnewStatement(table));
      this.late.inc(rows.length);
    }
  }
}
