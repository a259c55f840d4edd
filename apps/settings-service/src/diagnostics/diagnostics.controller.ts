import { Controller, Get, Inject, Res } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Public } from '@platform/access-tokens';
import { CLOCK, Documented, jsonStringReply, sendJsonText } from '@platform/service-defaults';
import { sleep } from '@platform/time';
import type { Clock } from '@platform/time';
import type { FastifyReply } from 'fastify';
import { DataSource } from 'typeorm';
import { GET_DATABASE_STATUS, HEALTH_CHECK, PING } from './diagnostics-docs';

/** The database as seen from this replica. It names no host: any caller with a token may read it. */
interface DatabaseStatus {
  readonly status: 'up' | 'down';
  readonly latencyMs: number;
  /** ISO 8601, UTC. */
  readonly checkedAt: string;
}

const LIMIT_MS = 2_000;

/** Source: settings spec, Diagnostics. */
@Controller('platform/v1/diagnostics')
export class DiagnosticsController {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Liveness only: says nothing about the database, and needs no body. */
  @Get('health-check')
  @Documented(HEALTH_CHECK)
  @Public()
  healthCheck(): void {
    // Answering is the check.
  }

  @Get('ping')
  @Documented(PING)
  @Public()
  ping(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, 'pong');
  }

  /** For any valid token, whatever its personas. */
  @Get('database')
  @Documented(GET_DATABASE_STATUS)
  async database(@Res() reply: FastifyReply): Promise<void> {
    const status = await probeDatabase(this.dataSource, this.clock);
    void reply.header('cache-control', 'no-store');
    if (status.status === 'down') void reply.header('retry-after', '1');
    sendJsonText(reply, JSON.stringify(status), status.status === 'up' ? 200 : 503);
  }
}

/** Asks the database for a row and waits for it no longer than 2 s. */
async function probeDatabase(dataSource: DataSource, clock: Clock): Promise<DatabaseStatus> {
  const checkedAt = clock.now().toISOString();
  const startedAtMs = clock.monotonicMs();
  const stopWaiting = new AbortController();
  const response = dataSource.query('SELECT 1').then(
    () => 'up' as const,
    // Why it is down stays inside: the message of a driver names hosts and users.
    () => 'down' as const,
  );
  const timeout = sleep(LIMIT_MS, stopWaiting.signal).then(
    () => 'down' as const,
    () => 'down' as const,
  );
  const status = await Promise.race([response, timeout]);
  stopWaiting.abort();
  return { status, latencyMs: Math.round((clock.monotonicMs() - startedAtMs) * 10) / 10, checkedAt };
}
