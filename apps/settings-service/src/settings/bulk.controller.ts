import { Controller, HttpCode, Post, Res } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { ApiBody, ApiOkResponse, ApiOperation, ApiTags } from '@platform/open-api';
import { Persona } from '@platform/personas';
import { validatedBy } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import {
  BULK_EXAMPLES,
  ReadSettingsDto,
  ReadSettingsResponseDto,
  WriteSettingsDto,
  WriteSettingsResponseDto,
  keyOf,
  writeSettings,
} from './bulk.dto';
import { distinctKeys } from './setting-key';
import { SettingProblemResponse, WriteRefusals } from './setting-problems.filter';
import { IdempotencyHeader, InvalidRequestResponse } from './setting-documentation.decorator';
import { HeadersOfBulkWrite, JsonBody } from './setting-request.decorator';
import { sendRead, sendWrites } from './setting-response';
import { SettingsRepository } from './settings.repository';
import { SettingsService } from './settings.service';
import { auditTrail } from './write-request';
import type { WriteHeaders } from './write-request';

/** Reads and writes of many settings. An addition to the specification. */
@Controller('platform/v1/commands')
@ApiTags('Settings')
export class BulkController {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly service: SettingsService,
  ) {}

  @Post('read')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'readSettings',
    summary: 'Read up to 1,000 settings',
    description:
      'Reads all of them in one snapshot. A setting that is named several times is returned once, at its first position.',
  })
  @ApiBody({ type: ReadSettingsDto, examples: BULK_EXAMPLES.read })
  @ApiOkResponse({
    description: 'The settings that exist, and the names of the others.',
    type: ReadSettingsResponseDto.Output,
    examples: BULK_EXAMPLES.found,
  })
  @InvalidRequestResponse()
  @RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
  async read(
    @JsonBody(validatedBy(ReadSettingsDto.schema)) request: z.output<typeof ReadSettingsDto.schema>,
    @CurrentCaller() { subject }: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const keys = distinctKeys(request.settings.map(keyOf));
    sendRead(reply, keys, await this.settings.findMany(subject, keys));
  }

  @Post('write')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'writeSettings',
    summary: 'Write or delete up to 100 settings, all or nothing',
    description:
      'Runs in one transaction. Each write has its own conditions and its own history entry; the entries share one request id. The body is limited to 512 KiB.',
  })
  @IdempotencyHeader()
  @ApiBody({ type: WriteSettingsDto, examples: BULK_EXAMPLES.write })
  @ApiOkResponse({
    description: 'All were written or deleted.',
    type: WriteSettingsResponseDto.Output,
    examples: BULK_EXAMPLES.written,
  })
  @InvalidRequestResponse()
  @SettingProblemResponse(
    'A setting to delete does not exist; `errors` names the first.',
    'setting-not-found',
  )
  @WriteRefusals()
  @RequirePersona(Persona.InternalPartner)
  async write(
    @JsonBody(validatedBy(writeSettings)) { writes }: z.output<typeof writeSettings>,
    @HeadersOfBulkWrite() headers: WriteHeaders,
    @CurrentCaller() caller: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendWrites(reply, await this.service.writeAll(writes, auditTrail(headers, caller)));
  }
}
