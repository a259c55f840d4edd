import { Controller, Get, HttpCode, Post, Query, Res } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { ApiBody, ApiOkResponse, ApiOperation, ApiTags, PagedQuery } from '@platform/open-api';
import { Persona } from '@platform/personas';
import { SignedCursor, sendJsonText, validatedBy } from '@platform/service-defaults';
import type { SettingName } from '@platform/setting-names';
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import {
  ChangesPageDto,
  HistoryQuery,
  PAST_EXAMPLES,
  RestoreSubsystemDto,
  RestoredSubsystemDto,
} from './past.dto';
import { PastSettingsRepository } from './past-settings.repository';
import {
  HeadersOfWrite,
  InvalidRequestResponse,
  JsonBody,
  Subsystem,
  SubsystemPath,
  ReadResponses,
} from './setting-request.decorator';
import { historyPageJson, sendPage } from './setting-response';
import { SettingProblemResponse } from './setting-problems.filter';
import { READ_HEADERS } from './setting.dto';
import { SettingsService } from './settings.service';
import { SettledPastService } from './settled-past.service';
import { auditTrail } from './write-request';
import type { WriteHeaders } from './write-request';

/** What happened to all settings, and a subsystem as it was; additive to the specification. */
@Controller('platform/v1')
@ApiTags('History')
@RequirePersona(Persona.InternalPartner)
export class PastController {
  constructor(
    private readonly cursors: SignedCursor,
    private readonly past: PastSettingsRepository,
    private readonly service: SettingsService,
    private readonly settled: SettledPastService,
  ) {}

  @Get('history')
  @ApiOperation({
    operationId: 'listHistory',
    summary: 'List the changes of all settings, newest first',
    description: 'By subsystem, by who made them and when; all filters hold together.',
  })
  @PagedQuery()
  @ApiOkResponse({
    description: 'One page.',
    type: ChangesPageDto.Output,
    examples: PAST_EXAMPLES.changes,
    headers: READ_HEADERS,
  })
  @ReadResponses()
  async list(
    @Query() query: HistoryQuery,
    @CurrentCaller() { subject }: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { pageKey, pageSize, subsystem, ...filter } = query;
    const list = `history ${JSON.stringify([subsystem?.key, filter])}`;
    const before = pageKey === undefined ? null : String(this.cursors.decode(list, pageKey)[0]);
    const { personId, userId, from, to } = filter;
    // Whoever follows the pages sees every entry. The first page has waited for them.
    if (before === null) await this.settled.waitForList(to);
    const wanted = { subsystemKey: subsystem?.key, personId, userId, from, to };
    const { rows, next } = await this.past.listEntries(subject, wanted, pageSize, before);
    sendPage(reply, historyPageJson(rows, next && this.cursors.encode(list, [next.historyId])));
  }

  @Post('subsystems/:subsystemName/commands/restore')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'restoreSubsystem',
    summary: 'Make a subsystem what it was at an instant',
    description:
      'All or nothing: settings that are other now are written again, those that were not there are deleted, each with a history entry. \
Ask with `dryRun` first. For up to 10,000 settings that change.',
  })
  @SubsystemPath()
  @ApiBody({ type: RestoreSubsystemDto, examples: PAST_EXAMPLES.restore })
  @ApiOkResponse({
    description: 'Done, or what would be done.',
    type: RestoredSubsystemDto.Output,
    examples: PAST_EXAMPLES.restored,
  })
  @InvalidRequestResponse()
  @SettingProblemResponse(
    'More than 10,000 settings or 256 MiB would change, or the subsystem has had more than 200,000 names: nothing was changed.',
    'restore-too-large',
  )
  @SettingProblemResponse('The caller writes faster than one caller may.', 'too-much-written')
  async restore(
    @Subsystem() subsystem: SettingName,
    @JsonBody(validatedBy(RestoreSubsystemDto.schema))
    { at, dryRun }: z.output<typeof RestoreSubsystemDto.schema>,
    @HeadersOfWrite() headers: WriteHeaders,
    @CurrentCaller() caller: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const trail = dryRun ? null : auditTrail(headers, caller);
    await this.settled.wait(at);
    const changes = await this.service.restoreSubsystem({ subsystemKey: subsystem.key, at, trail });
    sendJsonText(reply, JSON.stringify({ at, dryRun, changes }));
  }
}
