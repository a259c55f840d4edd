import { Controller, Get, Res } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { Documented, jsonStringReply } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { PING } from './diagnostics-docs';

/** Tells callers without a token that the service answers. */
@Controller('diagnostics')
export class DiagnosticsController {
  @Get('ping')
  @Documented(PING)
  @Public()
  ping(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, 'pong');
  }
}
