import { Controller, Get, HttpCode, Param, Post, Query, Res } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { Documented, SignedCursor } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { DataSource } from 'typeorm';
import { LIST_HISTORY, RESTORE_SETTING } from './history-docs';
import { historyPageJson } from './history-json';
import { listHistory } from './list-history.query';
import { RestoreSettingHandler } from './restore-setting.handler';
import type { SettingKey } from './setting-key';
import { sendPage, sendWritten } from './setting-reply';
import { HeadersOfWrite, KeyOfSetting } from './setting-request.decorator';
import type { WriteHeaders } from './setting-request.decorator';
import { HistoryEntryParams, PageQuery } from './settings.dto';
import { writeRequest } from './write-request';

/** The audit history of a setting; additive to the specification. */
@Controller('platform/v1/subsystems/:subsystemName/settings/:settingName/history')
@RequirePersona(Persona.InternalPartner)
export class SettingsHistoryController {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly cursors: SignedCursor,
    private readonly restoreSetting: RestoreSettingHandler,
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
    const page = await listHistory(this.dataSource, key, query.pageSize, before);
    const nextPageKey = page.nextBefore && this.cursors.encode(list, [page.nextBefore]);
    sendPage(reply, historyPageJson(page.entries, nextPageKey));
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
    sendWritten(reply, await this.restoreSetting.execute(writeRequest(key, headers, caller), historyId));
  }
}
