import { Controller, Delete, Get, Put, Query, Req, Res, applyDecorators } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { ApiBody, ApiOkResponse, ApiOperation, ApiTags, PagedQuery } from '@platform/open-api';
import { Persona } from '@platform/personas';
import { SignedCursor } from '@platform/service-defaults';
import type { SettingName } from '@platform/setting-names';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BatchedSettingsRepository } from './batched-settings.repository';
import { PageAtQuery } from './past.dto';
import { PastSettingsRepository } from './past-settings.repository';
import { SettingError } from './setting-error';
import type { SettingKey } from './setting-key';
import { InvalidValueResponse, SettingProblemResponse, WriteRefusals } from './setting-problems.filter';
import {
  AtInstant,
  InvalidRequestResponse,
  SettingPath,
  SubsystemPath,
  WriteConditions,
  WrittenResponse,
  ReadResponses,
} from './setting-documentation.decorator';
import { readingOf, requireInternalPartner, valueTextOf, writeRequestOf } from './setting-request';
import { Subsystem } from './setting-request.decorator';
import type { SettingRead } from './setting-request';
import {
  platformSettingJson,
  sendPage,
  sendSetting,
  sendWritten,
  settingsPageJson,
} from './setting-response';
import {
  INVOICE_DAY,
  PageQuery,
  SettingsPageDto,
  PlatformSettingDto,
  PutPlatformSettingDto,
  VALUES,
  BODIES,
  READ_HEADERS,
} from './setting.dto';
import type { CurrentSetting } from './setting.entity';
import { SettingsRepository } from './settings.repository';
import { SettingsService } from './settings.service';
import { SettledPastService } from './settled-past.service';

const LIST_OF_ALL = 'settings';
const SETTING = 'subsystems/:subsystemName/settings/:settingName';

function SettingsPage(): MethodDecorator {
  const first = { settings: [INVOICE_DAY], nextPageKey: 'WyJiaWxsaW5nIl0.5kV…' };
  return applyDecorators(
    PagedQuery(),
    ApiOkResponse({
      description: 'One page.',
      type: SettingsPageDto.Output,
      examples: {
        first: { summary: 'The first of several pages', value: first },
        none: { summary: 'No settings', value: { settings: [], nextPageKey: null } },
      },
      headers: READ_HEADERS,
    }),
    ReadResponses(),
  );
}

const NotFound = (): MethodDecorator =>
  SettingProblemResponse('There is no such setting.', 'setting-not-found');

/** Documents what the two reads of a setting have in common. */
function ReadRoute(): MethodDecorator {
  return applyDecorators(SettingPath(), AtInstant(), ReadResponses(), NotFound());
}

/** The settings resource. Source: settings spec, Endpoints. */
@Controller('platform/v1')
@ApiTags('Settings')
export class SettingsController {
  constructor(
    private readonly cursors: SignedCursor,
    private readonly batch: BatchedSettingsRepository,
    private readonly settings: SettingsRepository,
    private readonly service: SettingsService,
    private readonly past: PastSettingsRepository,
    private readonly settled: SettledPastService,
  ) {}

  @Get('settings')
  @ApiOperation({ operationId: 'listAllSettings', summary: 'List all settings of all subsystems' })
  @SettingsPage()
  @RequirePersona(Persona.InternalPartner)
  async listAll(
    @Query() query: PageQuery,
    @CurrentCaller() { subject }: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const after = query.pageKey === undefined ? null : this.cursors.decode(LIST_OF_ALL, query.pageKey);
    const position = after && { subsystemKey: String(after[0]), settingKey: String(after[1]) };
    const { rows, next } = await this.settings.listAll(subject, query.pageSize, position);
    const nextPageKey = next && this.cursors.encode(LIST_OF_ALL, [next.subsystemKey, next.settingKey]);
    sendPage(reply, settingsPageJson(rows, nextPageKey));
  }

  @Get('subsystems/:subsystemName/settings')
  @ApiOperation({
    operationId: 'listSubsystemSettings',
    summary: 'List the settings of one subsystem',
    description: 'A subsystem without settings has an empty list.',
  })
  @SubsystemPath()
  @AtInstant()
  @SettingsPage()
  @RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
  async listSubsystem(
    @Subsystem() subsystem: SettingName,
    @Query() { pageKey, pageSize, at }: PageAtQuery,
    @CurrentCaller() { subject }: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    if (at !== undefined) requireInternalPartner(request);
    const list = `settings of ${subsystem.key}${at === undefined ? '' : `\u0000${at.toISOString()}`}`;
    const after = pageKey === undefined ? null : String(this.cursors.decode(list, pageKey)[0]);
    if (at !== undefined) await this.settled.wait(at);
    const { rows, next } =
      at === undefined
        ? await this.settings.listSubsystem(subject, subsystem.key, pageSize, after)
        : await this.past.listSubsystemAt(subject, subsystem.key, at, pageSize, after);
    const nextPageKey = next && this.cursors.encode(list, [next.settingKey]);
    sendPage(reply, settingsPageJson(rows, nextPageKey));
  }

  @Get(SETTING)
  @ApiOperation({ operationId: 'getSetting', summary: 'Get one setting' })
  @ReadRoute()
  @ApiOkResponse({
    description: 'The setting.',
    type: PlatformSettingDto.Output,
    examples: { one: { summary: 'A number', value: INVOICE_DAY } },
    headers: READ_HEADERS,
  })
  @RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
  async get(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const read = readingOf(request);
    sendSetting(reply, await this.getSetting(read), read.conditions, platformSettingJson);
  }

  @Get(`${SETTING}/value`)
  @ApiOperation({
    operationId: 'getSettingValue',
    summary: 'Get the bare value of a setting',
    description: 'The bare JSON value, byte for byte as it was written.',
  })
  @ReadRoute()
  @ApiOkResponse({
    description: 'The value.',
    schema: { $ref: '#/components/schemas/SettingValue' },
    examples: VALUES,
    headers: READ_HEADERS,
  })
  @RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
  async getValue(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const read = readingOf(request);
    sendSetting(reply, await this.getSetting(read), read.conditions, (setting) => setting.valueText);
  }

  @Put(SETTING)
  @ApiOperation({
    operationId: 'putSetting',
    summary: 'Create a setting or replace its value',
    description: 'The setting and its history entry are written in one transaction.',
  })
  @SettingPath()
  @WriteConditions()
  @ApiBody({ type: PutPlatformSettingDto, examples: BODIES })
  @WrittenResponse()
  @InvalidValueResponse()
  @WriteRefusals()
  @RequirePersona(Persona.InternalPartner)
  async put(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    sendWritten(reply, await this.service.put(writeRequestOf(request), valueTextOf(request)));
  }

  @Delete(SETTING)
  @ApiOperation({
    operationId: 'deleteSetting',
    summary: 'Delete a setting',
    description: 'Its history is kept, with an entry for the deletion.',
  })
  @SettingPath()
  @WriteConditions()
  @ApiOkResponse({
    description: 'The deleted setting with its last value.',
    type: PlatformSettingDto.Output,
    examples: { deleted: { summary: 'The setting', value: INVOICE_DAY } },
  })
  @InvalidRequestResponse()
  @NotFound()
  @WriteRefusals()
  @RequirePersona(Persona.InternalPartner)
  async delete(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    sendWritten(reply, await this.service.delete(writeRequestOf(request)));
  }

  private async findPast(key: SettingKey, at: Date): Promise<CurrentSetting | null> {
    await this.settled.wait(at);
    return this.past.findAt(key, at);
  }

  private async getSetting({ key, at }: SettingRead): Promise<CurrentSetting> {
    const setting = await (at === undefined ? this.batch.find(key) : this.findPast(key, at));
    if (setting === null) throw new SettingError('setting-not-found');
    return setting;
  }
}
