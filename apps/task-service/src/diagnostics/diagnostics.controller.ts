import { Controller, Get, Res } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { jsonStringReply } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';

/** Tells callers without a token that the service answers. */
@Controller('diagnostics')
export class DiagnosticsController {
  @Get('ping')
  @Public()
  ping(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, 'pong');
  }
}
