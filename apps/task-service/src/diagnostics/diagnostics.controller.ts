import { Controller, Get, Res } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { ApiOkResponse, ApiOperation, ApiTags, NeverFails } from '@platform/open-api';
import { jsonStringReply } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';

/** Tells callers without a token that the service answers. */
@Controller('diagnostics')
@ApiTags('Diagnostics')
export class DiagnosticsController {
  @Get('ping')
  @ApiOperation({ operationId: 'ping', summary: 'Answer "pong"' })
  @ApiOkResponse({
    description: 'A JSON string.',
    schema: { type: 'string', const: 'pong' } as object,
    examples: { pong: { summary: 'The answer', value: 'pong' } },
  })
  @NeverFails()
  @Public()
  ping(@Res() reply: FastifyReply): void {
    jsonStringReply(reply, 'pong');
  }
}
