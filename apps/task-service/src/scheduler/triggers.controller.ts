import { Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { Documented } from '@platform/service-defaults';
import { CallerScope } from '../access/caller-scope.service';
import { KeysetPages } from '../paging/keyset-page';
import { LIST_TRIGGERS, PAUSE_TRIGGER, RESUME_TRIGGER } from './trigger-docs';
import { ListTriggersDto, TriggerParams, triggerBody } from './trigger.dto';
import type { TriggerBody } from './trigger.dto';
import { TriggersRepository } from './triggers.repository';
import { TriggersService } from './triggers.service';

@Controller('Triggers')
@RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
export class TriggersController {
  constructor(
    private readonly service: TriggersService,
    private readonly triggers: TriggersRepository,
    private readonly scope: CallerScope,
    private readonly pages: KeysetPages,
  ) {}

  @Get()
  @Documented(LIST_TRIGGERS)
  async list(
    @Query() { facilityId, pageKey, pageSize }: ListTriggersDto,
    @CurrentCaller() caller: Caller,
  ): Promise<{ triggers: TriggerBody[]; nextPageKey: string | null }> {
    const scope = await this.scope.forList(caller, facilityId);
    const { rows, nextPageKey } = await this.pages.read({
      list: 'triggers',
      filters: { facilityId },
      pageKey,
      pageSize,
      read: (range) => this.triggers.list({ scope, ...range }),
      position: (trigger) => [trigger.facilityId],
    });
    return { triggers: rows.map(triggerBody), nextPageKey };
  }

  @Post(':facilityId/commands/pause')
  @Documented(PAUSE_TRIGGER)
  @HttpCode(200)
  @RequirePersona(Persona.InternalPartner)
  async pause(@Param() { facilityId }: TriggerParams): Promise<TriggerBody> {
    return triggerBody(await this.service.pause(facilityId));
  }

  @Post(':facilityId/commands/resume')
  @Documented(RESUME_TRIGGER)
  @HttpCode(200)
  @RequirePersona(Persona.InternalPartner)
  async resume(@Param() { facilityId }: TriggerParams): Promise<TriggerBody> {
    return triggerBody(await this.service.resume(facilityId));
  }
}
