import { Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { ApiOkResponse, ApiOperation, ApiTags, PagedQuery } from '@platform/open-api';
import { Persona } from '@platform/personas';
import { SignedCursor } from '@platform/service-defaults';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { SettingKey } from './setting-key';
import { SettingProblemResponse, WriteRefusals } from './setting-problems.filter';
import {
  InvalidRequestResponse,
  SettingPath,
  WriteConditions,
  WrittenResponse,
  ReadResponses,
} from './setting-documentation.decorator';
import { writeRequestOf } from './setting-request';
import { KeyOfSetting } from './setting-request.decorator';
import { historyPageJson, sendPage, sendWritten } from './setting-response';
import { ENTRY, HistoryEntryParams, PageQuery, HistoryPageDto, READ_HEADERS } from './setting.dto';
import { SettingsRepository } from './settings.repository';
import { SettingsService } from './settings.service';

/** The audit history of a setting. An addition to the specification. */
@Controller('platform/v1/subsystems/:subsystemName/settings/:settingName/history')
@ApiTags('History')
@RequirePersona(Persona.InternalPartner)
export class SettingsHistoryController {
  constructor(
    private readonly cursors: SignedCursor,
    private readonly settings: SettingsRepository,
    private readonly service: SettingsService,
  ) {}

  @Get()
  @ApiOperation({
    operationId: 'listSettingHistory',
    summary: 'List the history of a setting, newest first',
    description:
      'Also works after the setting was deleted. A setting that never existed has an empty history.',
  })
  @SettingPath()
  @PagedQuery()
  @ApiOkResponse({
    description: 'One page.',
    type: HistoryPageDto.Output,
    examples: { one: { summary: 'One write', value: { history: [ENTRY], nextPageKey: null } } },
    headers: READ_HEADERS,
  })
  @ReadResponses()
  async list(
    @KeyOfSetting() key: SettingKey,
    @Query() query: PageQuery,
    @CurrentCaller() { subject }: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const list = `history of ${JSON.stringify([key.subsystem.key, key.setting.key])}`;
    const before = query.pageKey === undefined ? null : String(this.cursors.decode(list, query.pageKey)[0]);
    const { rows, next } = await this.settings.listHistory(subject, key, query.pageSize, before);
    const nextPageKey = next && this.cursors.encode(list, [next.historyId]);
    sendPage(reply, historyPageJson(rows, nextPageKey));
  }

  @Post(':historyId/restore')
  @ApiOperation({
    operationId: 'restoreSetting',
    summary: 'Restore a past value of a setting',
    description:
      'Writes the value that the entry wrote or deleted. It is a write like any other, with its own history entry.',
  })
  @SettingPath()
  @WriteConditions()
  @WrittenResponse()
  @InvalidRequestResponse()
  @SettingProblemResponse('The history of this setting has no such entry.', 'history-entry-not-found')
  @WriteRefusals()
  @HttpCode(200)
  async restore(
    @Param() { historyId }: HistoryEntryParams,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendWritten(reply, await this.service.restore(writeRequestOf(request), historyId));
  }
}
