import { Controller, Get, Inject, Res } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Public } from '@platform/access-tokens';
import { CLOCK, Documented, jsonStringReply, sendJsonText } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import type { FastifyReply } from 'fastify';
import { DataSource } from 'typeorm';
import { GET_DATABASE_STATUS, HEALTH_CHECK, PING } from './diagnostics-docs';
import { probeDatabase } from './probe-database.query';

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
