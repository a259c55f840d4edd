import { Controller, Res } from '@nestjs/common';
import { ApiTags, PingRoute } from '@platform/open-api';
import { jsonStringReply } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';

/** Ping route that needs no token. */
@Controller('diagnostics')
@ApiTags('Diagnostics')
export class DiagnosticsController {
  @PingRoute('pong')
  ping(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, 'pong');
  }
}
