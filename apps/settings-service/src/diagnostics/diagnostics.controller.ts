import { Controller, Get, Inject, Res } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Public } from '@platform/access-tokens';
import {
  ApiOkResponse,
  ApiOperation,
  ApiResponse,
  ApiTags,
  NeverFails,
  PingRoute,
  RESPONSE_HEADERS,
  jsonContent,
  problemContent,
} from '@platform/open-api';
import { CLOCK, jsonStringReply, sendJsonText } from '@platform/service-defaults';
import { withTimeout } from '@platform/time';
import type { Clock } from '@platform/time';
import type { FastifyReply } from 'fastify';
import { createZodDto } from 'nestjs-zod/dto';
import { DataSource } from 'typeorm';
import { z } from 'zod';

const PROBE_TIMEOUT_MS = 2_000;

/**
 * The status of the database as this replica sees it. It names no host, because any caller with a token may
 * read it.
 */
class DatabaseStatusDto extends createZodDto(
  z
    .object({
      status: z.enum(['up', 'down']),
      latencyMs: z.number().meta({ description: 'Response time of the database in milliseconds.' }),
      checkedAt: z.string().meta({ format: 'date-time' }),
    })
    .meta({ description: 'The database as this replica sees it.' }),
) {}

const CHECKED_AT = '2026-03-02T09:15:00.123Z';

/** Source: settings spec, Diagnostics. */
@Controller('platform/v1/diagnostics')
@ApiTags('Diagnostics')
export class DiagnosticsController {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Liveness only: does not check the database, and the response has no body. */
  @Get('health-check')
  @ApiOperation({
    operationId: 'checkHealth',
    summary: 'Check that the service runs',
    description: 'Does not check the database. The response has no body.',
  })
  @ApiOkResponse({ description: 'The service runs.' })
  @NeverFails()
  @Public()
  healthCheck(): void {
    // The response itself is the check.
  }

  @PingRoute('pong')
  ping(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, 'pong');
  }

  /** Open to any valid token, whatever its personas. */
  @Get('database')
  @ApiOperation({
    operationId: 'getDatabaseStatus',
    summary: 'Check whether the database responds',
    description: 'Waits at most 2 seconds for it. Any valid token is accepted.',
  })
  @ApiOkResponse({
    description: 'The database responds.',
    type: DatabaseStatusDto.Output,
    examples: { up: { summary: 'Up', value: { status: 'up', latencyMs: 1.4, checkedAt: CHECKED_AT } } },
    headers: RESPONSE_HEADERS.noStore,
  })
  @ApiResponse({
    status: 503,
    description: 'The database does not respond; or, as a problem, tokens cannot be verified at the moment.',
    headers: RESPONSE_HEADERS.retryAfter,
    content: {
      ...jsonContent(DatabaseStatusDto.Output, {
        down: { summary: 'Down', value: { status: 'down', latencyMs: 2000.3, checkedAt: CHECKED_AT } },
      }),
      ...problemContent(503, {
        tokens: {
          summary: 'Tokens cannot be verified',
          detail: 'Access tokens cannot be verified at the moment.',
          instance: '/platform/v1/diagnostics/database',
        },
      }),
    },
  })
  async database(@Res() reply: FastifyReply): Promise<void> {
    const status = await probeDatabase(this.dataSource, this.clock);
    void reply.header('cache-control', 'no-store');
    if (status.status === 'down') void reply.header('retry-after', '1');
    sendJsonText(reply, JSON.stringify(status), status.status === 'up' ? 200 : 503);
  }
}

/** Runs `SELECT 1` and waits at most 2 s for it. */
async function probeDatabase(dataSource: DataSource, clock: Clock): Promise<DatabaseStatusDto> {
  const checkedAt = clock.now().toISOString();
  const startedAtMs = clock.monotonicMs();
  const status = await withTimeout(dataSource.query('SELECT 1'), PROBE_TIMEOUT_MS).then(
    () => 'up' as const,
    // The error is not returned: a driver's message names hosts and users.
    () => 'down' as const,
  );
  return { status, latencyMs: Math.round((clock.monotonicMs() - startedAtMs) * 10) / 10, checkedAt };
}
