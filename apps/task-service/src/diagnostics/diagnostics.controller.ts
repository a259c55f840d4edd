import { Controller, Res } from '@nestjs/common';
import { ApiTags, PingRoute } from '@platform/open-api';
import { jsonStringReply } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';

/** Tells callers without a token that the service answers. */
@Controller('diagnostics')
@ApiTags('Diagnostics')
export class DiagnosticsController {
  @PingRoute('pong')
  ping(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, 'pong');
  }
}
