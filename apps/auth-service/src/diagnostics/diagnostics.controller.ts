import { Controller, Get, Inject, Res } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { Documented, jsonStringReply } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { GET_VERSION, PING } from './diagnostics-docs';

/** Anonymous diagnostics. Source: authentication spec, Diagnostics. */
@Public()
@Controller('auth/diagnostics')
export class DiagnosticsController {
  constructor(@Inject(AUTH_CONFIG) private readonly config: AuthConfig) {}

  @Get('ping')
  @Documented(PING)
  ping(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, 'Pong');
  }

  @Get('version')
  @Documented(GET_VERSION)
  version(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, this.config.SERVICE_VERSION);
  }
}
