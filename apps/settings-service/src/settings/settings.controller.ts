import { Controller, Delete, Get, Put, Query, Res } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { Documented, SignedCursor } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { BatchedSettingsRepository } from './batched-settings.repository';
import {
  DELETE_SETTING,
  GET_SETTING,
  GET_VALUE,
  LIST_ALL,
  LIST_SUBSYSTEM,
  PUT_SETTING,
} from './setting-docs';
import { SettingError } from './setting-errors';
import type { SettingKey, SettingName } from './setting-key';
import { HeadersOfWrite, KeyOfSetting, Reading, Subsystem, ValueText } from './setting-request.decorator';
import type { SettingRead } from './setting-request.decorator';
import {
  platformSettingJson,
  sendPage,
  sendSetting,
  sendWritten,
  settingsPageJson,
} from './setting-response';
import type { JsonText } from './setting-value';
import { PageQuery } from './setting.dto';
import type { CurrentSetting } from './setting.entity';
import { SettingsRepository } from './settings.repository';
import { SettingsService } from './settings.service';
import { writeRequest } from './write-request';
import type { WriteHeaders } from './write-request';

const LIST_OF_ALL = 'settings';
const SETTING = 'subsystems/:subsystemName/settings/:settingName';

/** The settings resource. Source: settings spec, Endpoints. */
@Controller('platform/v1')
export class SettingsController {
  constructor(
    private readonly cursors: SignedCursor,
    private readonly batch: BatchedSettingsRepository,
    private readonly settings: SettingsRepository,
    private readonly service: SettingsService,
  ) {}

  @Get('settings')
  @Documented(LIST_ALL)
  @RequirePersona(Persona.InternalPartner)
  async listAll(@Query() query: PageQuery, @Res() reply: FastifyReply): Promise<void> {
    const after = query.pageKey === undefined ? null : this.cursors.decode(LIST_OF_ALL, query.pageKey);
    const position = after && { subsystemKey: String(after[0]), settingKey: String(after[1]) };
    const { rows, next } = await this.settings.listAll(query.pageSize, position);
    const nextPageKey = next && this.cursors.encode(LIST_OF_ALL, [next.subsystemKey, next.settingKey]);
    sendPage(reply, settingsPageJson(rows, nextPageKey));
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
    const { rows, next } = await this.settings.listSubsystem(subsystem.key, query.pageSize, after);
    const nextPageKey = next && this.cursors.encode(list, [next.settingKey]);
    sendPage(reply, settingsPageJson(rows, nextPageKey));
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
    sendWritten(reply, await this.service.put(writeRequest(key, headers, caller), value));
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
    sendWritten(reply, await this.service.delete(writeRequest(key, headers, caller)));
  }

  private async getSetting(key: SettingKey): Promise<CurrentSetting> {
    const setting = await this.batch.find(key);
    if (setting === null) throw new SettingError('setting-not-found');
    return setting;
  }
}
