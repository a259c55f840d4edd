import { Controller, Get, Inject, Res } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { ApiOkResponse, ApiOperation, ApiTags, NeverFails, PingRoute } from '@platform/open-api';
import { jsonStringReply } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';

/** Anonymous diagnostics. Source: authentication spec, Diagnostics. */
@Public()
@Controller('auth/diagnostics')
@ApiTags('Diagnostics')
@NeverFails()
export class DiagnosticsController {
  constructor(@Inject(AUTH_CONFIG) private readonly config: AuthConfig) {}

  @PingRoute('Pong')
  ping(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, 'Pong');
  }

  @Get('version')
  @ApiOperation({ operationId: 'getVersion', summary: 'Get the running version' })
  @ApiOkResponse({
    description: 'A JSON string.',
    schema: { type: 'string' },
    examples: { version: { summary: 'A version', value: '0.1.0' } },
  })
  version(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, this.config.SERVICE_VERSION);
  }
}
