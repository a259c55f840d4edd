import { Inject, Injectable, Logger } from '@nestjs/common';
import type { BeforeApplicationShutdown, OnApplicationShutdown } from '@nestjs/common';
import { isConnectionError, isStatementTimeout } from '@platform/database';
import { CLOCK, Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { SECOND_MS, sleep } from '@platform/time';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { tokenFlowOf } from '../rejections/token-endpoints';
import { clientAddress, sharedNetwork } from './client-address';
import { describeAttempt, withinAttempt } from './token-attempt';
import type { TokenAttempt } from './token-attempt';
import { TokenAuditRepository } from './token-audit.repository';
import type { TokenAuditRow } from './token-audit.repository';

/**
 * The flows whose bodies name an application or a user. In the callback of an identity provider, members with
 * the same names may mean something else.
 */
const NAMING_FLOWS: ReadonlySet<string | null> = new Set(['password', 'trust', 'trust-simple', 'code']);

const BATCH_ROWS = 500;
/** Maximum rows queued during an outage of the database; about 5 MB. */
const MAX_WAITING_ROWS = 10_000;
const RETRY_DELAY_MS = SECOND_MS;

interface WaitingRow {
  row: TokenAuditRow;
  refusedAtMs: number;
}

/**
 * Describes token requests, and audits the refused ones. The response to a refused request does not wait for
 * its audit row. Rows are written in batches; a batch has the rows that were queued while the previous
 * statement ran. More than 60 refusals of one network in one minute are merged into one row. Rows are lost in
 * an outage that outlasts the process or exceeds `MAX_WAITING_ROWS`. Issued tokens are not audited here but
 * by the statement that issues them, or by a separate one for a repeated refresh, before the response is
 * sent.
 */
@Injectable()
export class TokenAuditService implements BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly attempts = new WeakMap<object, TokenAttempt>();
  private waiting: WaitingRow[] = [];
  private writing: Promise<void> | null = null;
  private readonly stopping = new AbortController();
  private readonly rows;
  private readonly logger = new Logger('RefusalAudit');

  constructor(
    private readonly repository: TokenAuditRepository,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.rows = metrics.counter('auth_refusal_audit_rows_total', 'Audit rows of refused token requests', [
      'outcome',
    ]);
    this.rows.inc({ outcome: 'lost' }, 0);
  }

  /** Adds a hook that makes the attempt of each token request available as `currentAttempt()`. */
  track(instance: FastifyInstance): void {
    // A hook, because an interceptor would add the cost of an observable chain to every request. preHandler,
    // because the body names the application.
    instance.addHook('preHandler', (request, _reply, done) => {
      if (tokenFlowOf(request) === null) done();
      else withinAttempt(this.attemptOf(request), done);
    });
  }

  /** Returns the attempt of a request. Every call for a request returns the same object. */
  attemptOf(request: FastifyRequest): TokenAttempt {
    const known = this.attempts.get(request.raw);
    if (known !== undefined) return known;
    const attempt = describeAttempt({
      traceId: request.id,
      address: this.addressOf(request),
      applicationKeyHeader: request.headers['x-application-key'],
      body: NAMING_FLOWS.has(tokenFlowOf(request)) ? request.body : null,
    });
    this.attempts.set(request.raw, attempt);
    return attempt;
  }

  addressOf({ raw, headers }: FastifyRequest): string | null {
    const proxies = this.config.TRUSTED_PROXIES ?? null;
    return clientAddress(raw.socket.remoteAddress, headers['x-forwarded-for'], proxies);
  }

  /**
   * Queues the audit row of a refused request. The first 60 refusals of a network in a minute get a row each;
   * further ones are only counted.
   */
  record(row: TokenAuditRow): void {
    if (this.waiting.length >= MAX_WAITING_ROWS) {
      this.rows.inc({ outcome: 'lost' });
      return;
    }
    this.waiting.push({ row, refusedAtMs: this.clock.monotonicMs() });
    this.writing ??= this.writeAll();
  }

  /** Stops waiting for outages to end. Requests in flight may still queue rows. */
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

  /**
   * Writes a batch, retrying in an outage until the process stops. Rows that the database refuses are
   * dropped, so that they do not block all later ones.
   * @returns false if the process is stopping in an outage: all queued rows are lost
   */
  private async write(batch: readonly WaitingRow[]): Promise<boolean> {
    for (;;) {
      try {
        await this.repository.insertRefusals(this.dated(batch));
        this.rows.inc({ outcome: 'written' }, batch.length);
        return true;
      } catch (error) {
        const isOutage = isConnectionError(error) || isStatementTimeout(error);
        if (isOutage && !this.stopping.signal.aborted) {
          await sleep(RETRY_DELAY_MS, this.stopping.signal).catch(() => undefined);
          continue;
        }
        const lost = isOutage ? this.waiting.length : batch.length;
        this.rows.inc({ outcome: 'lost' }, lost);
        this.logger.error('audit rows of refused token requests are lost', { err: error, rows: lost });
        return !isOutage;
      }
    }
  }

  private dated(batch: readonly WaitingRow[]): (TokenAuditRow & { network: string; ageMs: number })[] {
    const nowMs = this.clock.monotonicMs();
    return batch.map(({ row, refusedAtMs }) => ({
      ...row,
      network: sharedNetwork(row.address),
      ageMs: nowMs - refusedAtMs,
    }));
  }
}
