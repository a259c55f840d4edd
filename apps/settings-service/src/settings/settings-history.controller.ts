import { Controller, Get, HttpCode, Param, Post, Query, Res } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { Documented, SignedCursor } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { LIST_HISTORY, RESTORE_SETTING } from './history-docs';
import type { SettingKey } from './setting-key';
import { HeadersOfWrite, KeyOfSetting } from './setting-request.decorator';
import { historyPageJson, sendPage, sendWritten } from './setting-response';
import { HistoryEntryParams, PageQuery } from './setting.dto';
import { SettingsRepository } from './settings.repository';
import { SettingsService } from './settings.service';
import { writeRequest } from './write-request';
import type { WriteHeaders } from './write-request';

/** The audit history of a setting; additive to the specification. */
@Controller('platform/v1/subsystems/:subsystemName/settings/:settingName/history')
@RequirePersona(Persona.InternalPartner)
export class SettingsHistoryController {
  constructor(
    private readonly cursors: SignedCursor,
    private readonly settings: SettingsRepository,
    private readonly service: SettingsService,
  ) {}

  @Get()
  @Documented(LIST_HISTORY)
  async list(
    @KeyOfSetting() key: SettingKey,
    @Query() query: PageQuery,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const list = `history of ${JSON.stringify([key.subsystem.key, key.setting.key])}`;
    const before = query.pageKey === undefined ? null : String(this.cursors.decode(list, query.pageKey)[0]);
    const { rows, next } = await this.settings.listHistory(key, query.pageSize, before);
    const nextPageKey = next && this.cursors.encode(list, [next.historyId]);
    sendPage(reply, historyPageJson(rows, nextPageKey));
  }

  @Post(':historyId/restore')
  @Documented(RESTORE_SETTING)
  @HttpCode(200)
  async restore(
    @KeyOfSetting() key: SettingKey,
    @Param() { historyId }: HistoryEntryParams,
    @HeadersOfWrite() headers: WriteHeaders,
    @CurrentCaller() caller: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendWritten(reply, await this.service.restore(writeRequest(key, headers, caller), historyId));
  }
}
