import { Controller, Get, HttpCode, Inject, Param, Post, Query } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { Documented, SignedCursor } from '@platform/service-defaults';
import { DataSource } from 'typeorm';
import { CallerScope } from '../access/caller-scope.service';
import { PAGE_CURSOR, keysetPage, listName } from '../paging/keyset-page';
import { listTriggers } from './list-triggers.query';
import { PauseTrigger } from './pause-trigger.handler';
import { triggerBody } from './trigger';
import type { TriggerBody } from './trigger';
import { LIST_TRIGGERS, PAUSE_TRIGGER, RESUME_TRIGGER } from './trigger-docs';
import { ListTriggersDto, TriggerParams } from './trigger.dto';

@Controller('Triggers')
@RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
export class TriggersController {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly scope: CallerScope,
    @Inject(PAGE_CURSOR) private readonly cursor: SignedCursor,
    private readonly pauseTrigger: PauseTrigger,
  ) {}

  @Get()
  @Documented(LIST_TRIGGERS)
  async list(
    @Query() { facilityId, pageKey, pageSize }: ListTriggersDto,
    @CurrentCaller() caller: Caller,
  ): Promise<{ triggers: TriggerBody[]; nextPageKey: string | null }> {
    const scope = await this.scope.forList(caller, facilityId);
    const list = listName('triggers', { facilityId });
    const after = pageKey === undefined ? [] : this.cursor.decode(list, pageKey);
    const rows = await listTriggers(this.dataSource, { scope, after, limit: pageSize + 1 });
    const page = keysetPage(rows, {
      pageSize,
      cursor: this.cursor,
      list,
      position: (trigger) => [trigger.facilityId],
    });
    return { triggers: page.rows.map(triggerBody), nextPageKey: page.nextPageKey };
  }

  @Post(':facilityId/commands/pause')
  @Documented(PAUSE_TRIGGER)
  @HttpCode(200)
  @RequirePersona(Persona.InternalPartner)
  async pause(@Param() { facilityId }: TriggerParams): Promise<TriggerBody> {
    return triggerBody(await this.pauseTrigger.pause(facilityId));
  }

  @Post(':facilityId/commands/resume')
  @Documented(RESUME_TRIGGER)
  @HttpCode(200)
  @RequirePersona(Persona.InternalPartner)
  async resume(@Param() { facilityId }: TriggerParams): Promise<TriggerBody> {
    return triggerBody(await this.pauseTrigger.resume(facilityId));
  }
}
