import { Inject, Injectable, Logger } from '@nestjs/common';
import type { BeforeApplicationShutdown, OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isConnectionError, isStatementTimeout } from '@platform/database';
import { CLOCK, Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { SECOND_MS, sleep } from '@platform/time';
import type { DataSource } from 'typeorm';
import { insertTokenAudits } from './insert-token-audits.query';
import type { TokenAuditRow } from './token-audit';

const BATCH_ROWS = 500;
/** What is kept through an outage of the database; some 5 MB. */
const MAX_WAITING_ROWS = 10_000;
const RETRY_DELAY_MS = SECOND_MS;

interface WaitingRow {
  row: TokenAuditRow;
  refusedAtMs: number;
}

/** The audit trail of requests that got no token. They are written after the answer, as many at once as have come in while the
 *  statement before was running: a refusal must neither cost a round trip nor fail for want of one. Tokens that are issued
 *  are audited by the statement that issues them. */
@Injectable()
export class RefusalAudit implements BeforeApplicationShutdown, OnApplicationShutdown {
  private waiting: WaitingRow[] = [];
  private writing: Promise<void> | null = null;
  private readonly stopping = new AbortController();
  private readonly rows;
  private readonly logger = new Logger(RefusalAudit.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.rows = metrics.counter('auth_refusal_audit_rows_total', 'Audit rows of refused token requests', [
      'outcome',
    ]);
    this.rows.inc({ outcome: 'lost' }, 0);
  }

  record(row: TokenAuditRow): void {
    if (this.waiting.length >= MAX_WAITING_ROWS) {
      this.rows.inc({ outcome: 'lost' });
      return;
    }
    this.waiting.push({ row, refusedAtMs: this.clock.monotonicMs() });
    this.writing ??= this.writeAll();
  }

  /** While requests in flight still end; then no outage is waited for any more. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await this.writing;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.writing;
  }

  private async writeAll(): Promise<void> {
    try {
      while (this.waiting.length > 0) {
        const batch = this.waiting.slice(0, BATCH_ROWS);
        if (!(await this.write(batch))) return;
        this.waiting = this.waiting.slice(batch.length);
      }
    } finally {
      this.writing = null;
    }
  }

  /** False: the process ends and the rows are lost. Rows that the database refuses are lost too, or they would be in the
   *  way of all others. */
  private async write(batch: readonly WaitingRow[]): Promise<boolean> {
    for (;;) {
      try {
        await insertTokenAudits(this.dataSource, this.dated(batch));
        this.rows.inc({ outcome: 'written' }, batch.length);
        return true;
      } catch (error) {
        const passes = isConnectionError(error) || isStatementTimeout(error);
        if (passes && !this.stopping.signal.aborted) {
          await sleep(RETRY_DELAY_MS, this.stopping.signal).catch(() => undefined);
          continue;
        }
        const lost = passes ? this.waiting.length : batch.length;
        this.rows.inc({ outcome: 'lost' }, lost);
        this.logger.error('audit rows of refused token requests are lost', { err: error, rows: lost });
        return !passes;
      }
    }
  }

  private dated(batch: readonly WaitingRow[]): (TokenAuditRow & { ageMs: number })[] {
    const nowMs = this.clock.monotonicMs();
    return batch.map(({ row, refusedAtMs }) => ({ ...row, ageMs: nowMs - refusedAtMs }));
  }
}
