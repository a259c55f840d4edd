import { Controller, Delete, Get, Put, Query, Res } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { Documented, SignedCursor } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { DataSource } from 'typeorm';
import { DeleteSettingHandler } from './delete-setting.handler';
import type { CurrentSetting } from './find-setting.query';
import { listAllSettings, listSubsystemSettings } from './list-settings.query';
import { PutSettingHandler } from './put-setting.handler';
import {
  DELETE_SETTING,
  GET_SETTING,
  GET_VALUE,
  LIST_ALL,
  LIST_SUBSYSTEM,
  PUT_SETTING,
} from './setting-docs';
import { SettingError } from './setting-errors';
import { platformSettingJson, settingsPageJson } from './setting-json';
import type { SettingKey, SettingName } from './setting-key';
import { sendPage, sendSetting, sendWritten } from './setting-reply';
import { SettingReads } from './setting-reads.service';
import { HeadersOfWrite, KeyOfSetting, Reading, Subsystem, ValueText } from './setting-request.decorator';
import type { SettingRead, WriteHeaders } from './setting-request.decorator';
import type { JsonText } from './setting-value';
import { PageQuery } from './settings.dto';
import { writeRequest } from './write-request';

const LIST_OF_ALL = 'settings';
const SETTING = 'subsystems/:subsystemName/settings/:settingName';

/** The settings resource. Source: settings spec, Endpoints. */
@Controller('platform/v1')
export class SettingsController {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly cursors: SignedCursor,
    private readonly reads: SettingReads,
    private readonly putSetting: PutSettingHandler,
    private readonly deleteSetting: DeleteSettingHandler,
  ) {}

  @Get('settings')
  @Documented(LIST_ALL)
  @RequirePersona(Persona.InternalPartner)
  async listAll(@Query() query: PageQuery, @Res() reply: FastifyReply): Promise<void> {
    const after = query.pageKey === undefined ? null : this.cursors.decode(LIST_OF_ALL, query.pageKey);
    const position = after && { subsystemKey: String(after[0]), settingKey: String(after[1]) };
    const { settings, next } = await listAllSettings(this.dataSource, query.pageSize, position);
    const nextPageKey = next && this.cursors.encode(LIST_OF_ALL, [next.subsystemKey, next.settingKey]);
    sendPage(reply, settingsPageJson(settings, nextPageKey));
  }

  @Get('subsystems/:subsystemName/settings')
  @Documented(LIST_SUBSYSTEM)
  @RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
  async listSubsystem(
    @Subsystem() subsystem: SettingName,
    @Query() query: PageQuery,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const list = `settings of ${subsystem.key}`;
    const after = query.pageKey === undefined ? null : String(this.cursors.decode(list, query.pageKey)[0]);
    const page = await listSubsystemSettings(this.dataSource, subsystem.key, query.pageSize, after);
    const nextPageKey = page.next && this.cursors.encode(list, [page.next.settingKey]);
    sendPage(reply, settingsPageJson(page.settings, nextPageKey));
  }

  @Get(SETTING)
  @Documented(GET_SETTING)
  @RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
  async get(@Reading() { key, conditions }: SettingRead, @Res() reply: FastifyReply): Promise<void> {
    sendSetting(reply, await this.getSetting(key), conditions, platformSettingJson);
  }

  @Get(`${SETTING}/value`)
  @Documented(GET_VALUE)
  @RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
  async getValue(@Reading() { key, conditions }: SettingRead, @Res() reply: FastifyReply): Promise<void> {
    sendSetting(reply, await this.getSetting(key), conditions, (setting) => setting.valueText);
  }

  @Put(SETTING)
  @Documented(PUT_SETTING)
  @RequirePersona(Persona.InternalPartner)
  async put(
    @KeyOfSetting() key: SettingKey,
    @ValueText() value: JsonText,
    @HeadersOfWrite() headers: WriteHeaders,
    @CurrentCaller() caller: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendWritten(reply, await this.putSetting.execute(writeRequest(key, headers, caller), value));
  }

  @Delete(SETTING)
  @Documented(DELETE_SETTING)
  @RequirePersona(Persona.InternalPartner)
  async delete(
    @KeyOfSetting() key: SettingKey,
    @HeadersOfWrite() headers: WriteHeaders,
    @CurrentCaller() caller: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendWritten(reply, await this.deleteSetting.execute(writeRequest(key, headers, caller)));
  }

  private async getSetting(key: SettingKey): Promise<CurrentSetting> {
    const setting = await this.reads.find(key);
    if (setting === null) throw new SettingError('setting-not-found');
    return setting;
  }
}
