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
import { RestorationsService } from './restorations.service';
import { InvalidRequestResponse, SubsystemPath, ReadResponses } from './setting-documentation.decorator';
import { HeadersOfBulkWrite, JsonBody, Subsystem } from './setting-request.decorator';
import { historyPageJson, sendPage } from './setting-response';
import { RestorationRefusals } from './setting-problems.filter';
import { READ_HEADERS } from './setting.dto';
import { SettledPastService } from './settled-past.service';
import { auditTrail } from './write-request';
import type { WriteHeaders } from './write-request';

/** The history of all settings, and the restoration of a subsystem. An addition to the specification. */
@Controller('platform/v1')
@ApiTags('History')
@RequirePersona(Persona.InternalPartner)
export class PastController {
  constructor(
    private readonly cursors: SignedCursor,
    private readonly past: PastSettingsRepository,
    private readonly restorations: RestorationsService,
    private readonly settled: SettledPastService,
  ) {}

  @Get('history')
  @ApiOperation({
    operationId: 'listHistory',
    summary: 'List the changes of all settings, newest first',
    description: 'Filters by subsystem, author and time; an entry must match all of them.',
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
    // Waits on the first page only. Its wait ensures that the following pages miss no entry.
    if (before === null) await this.settled.waitForList(to);
    const wanted = { subsystemKey: subsystem?.key, personId, userId, from, to };
    const { rows, next } = await this.past.listEntries(subject, wanted, pageSize, before);
    sendPage(reply, historyPageJson(rows, next && this.cursors.encode(list, [next.historyId])));
  }

  @Post('subsystems/:subsystemName/commands/restore')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'restoreSubsystem',
    summary: 'Restore a subsystem to an instant',
    description:
      'All or nothing: settings that differ now are written with their past value, and settings that did not exist are deleted, each with a history entry. \
Use `dryRun` first. At most 10,000 settings may change.',
  })
  @SubsystemPath()
  @ApiBody({ type: RestoreSubsystemDto, examples: PAST_EXAMPLES.restore })
  @ApiOkResponse({
    description: 'The changes that were made, or would be made.',
    type: RestoredSubsystemDto.Output,
    examples: PAST_EXAMPLES.restored,
  })
  @InvalidRequestResponse()
  @RestorationRefusals()
  async restore(
    @Subsystem() subsystem: SettingName,
    @JsonBody(validatedBy(RestoreSubsystemDto.schema))
    { at, dryRun }: z.output<typeof RestoreSubsystemDto.schema>,
    @HeadersOfBulkWrite() headers: WriteHeaders,
    @CurrentCaller() caller: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const trail = dryRun ? null : auditTrail(headers, caller);
    await this.settled.wait(at);
    const restoration = { subsystemKey: subsystem.key, at, trail };
    const changes = await this.restorations.restore(caller.subject, restoration);
    sendJsonText(reply, JSON.stringify({ at, dryRun, changes }));
  }
}
