import { Controller, Get, Inject, Res } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { jsonStringReply } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';

/** Anonymous diagnostics. Source: authentication spec, Diagnostics. */
@Public()
@Controller('auth/diagnostics')
export class DiagnosticsController {
  constructor(@Inject(AUTH_CONFIG) private readonly config: AuthConfig) {}

  @Get('ping')
  ping(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, 'Pong');
  }

  @Get('version')
  version(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, this.config.SERVICE_VERSION);
  }
}
