import { Controller, Get, HttpCode, Param, Post, Query, applyDecorators } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { ApiOkResponse, ApiOperation, ApiTags, PagedQuery } from '@platform/open-api';
import { Persona } from '@platform/personas';
import { CallerScope } from '../access/caller-scope.service';
import { MANAGERS } from '../access/route-personas';
import { KeysetPages, jsonBytes } from '../paging/keyset-page';
import {
  ForbiddenResponse,
  InvalidFieldResponse,
  TaskProblemResponse,
} from '../problems/task-problem.filter';
import { BoundedChange } from '../slots/bounded-change.decorator';
import { BoundedRead } from '../slots/bounded-read.decorator';
import {
  FIRES,
  FirePageDto,
  ListFiresDto,
  ListTriggersDto,
  TriggerDto,
  TriggerPageDto,
  TriggerParams,
  WAITING,
  fireBody,
  triggerBody,
} from './trigger.dto';
import { TriggersRepository } from './triggers.repository';
import { TriggersService } from './triggers.service';

function CommandResponses(name: 'pause' | 'resume', state: TriggerDto['state']): MethodDecorator {
  return applyDecorators(
    ApiOkResponse({
      description: 'The trigger, changed now or before.',
      type: TriggerDto.Output,
      examples: { done: { summary: 'The trigger', value: { ...WAITING, state } } },
    }),
    InvalidFieldResponse('/Triggers/x/commands/pause', 'facilityId', 'must be a positive integer'),
    TaskProblemResponse(
      'The facility has no trigger.',
      `/Triggers/501/commands/${name}`,
      'trigger-not-found',
    ),
    BoundedChange(`/Triggers/501/commands/${name}`),
  );
}

@Controller('Triggers')
@ApiTags('Triggers')
@RequirePersona(...MANAGERS)
export class TriggersController {
  constructor(
    private readonly service: TriggersService,
    private readonly triggers: TriggersRepository,
    private readonly scope: CallerScope,
    private readonly pages: KeysetPages,
  ) {}

  @Get()
  @ApiOperation({
    operationId: 'listTriggers',
    summary: 'List triggers',
    description: 'Ordered by facility.',
  })
  @PagedQuery()
  @ApiOkResponse({
    description: 'One page.',
    type: TriggerPageDto.Output,
    examples: { last: { summary: 'The last page', value: { triggers: [WAITING], nextPageKey: null } } },
  })
  @InvalidFieldResponse('/Triggers', 'pageSize', 'must be an integer from 1 to 1000')
  @ForbiddenResponse('/Triggers')
  @BoundedRead('/Triggers')
  async list(
    @Query() { facilityId, pageKey, pageSize }: ListTriggersDto,
    @CurrentCaller() caller: Caller,
  ): Promise<TriggerPageDto> {
    const scope = await this.scope.forList(caller, MANAGERS, facilityId);
    const { rows, nextPageKey } = await this.pages.read({
      list: 'triggers',
      filters: { facilityId },
      pageKey,
      pageSize,
      read: (range) => this.triggers.list({ scope, ...range }),
      position: (trigger) => [trigger.facilityId],
      bytes: (trigger) => jsonBytes(triggerBody(trigger)),
    });
    return { triggers: rows.map(triggerBody), nextPageKey };
  }

  @Get(':facilityId/fires')
  @ApiOperation({
    operationId: 'listTriggerFires',
    summary: 'List the fires of a trigger',
    description: 'Latest first. Fires are kept for 30 days by default.',
  })
  @PagedQuery()
  @ApiOkResponse({
    description: 'One page.',
    type: FirePageDto.Output,
    examples: { last: { summary: 'The last page', value: FIRES } },
  })
  @InvalidFieldResponse('/Triggers/501/fires', 'pageSize', 'must be an integer from 1 to 1000')
  @ForbiddenResponse('/Triggers/501/fires')
  @BoundedRead('/Triggers/501/fires')
  async fires(
    @Param() { facilityId }: TriggerParams,
    @Query() { pageKey, pageSize }: ListFiresDto,
    @CurrentCaller() caller: Caller,
  ): Promise<FirePageDto> {
    await this.scope.require(caller, MANAGERS, facilityId);
    const { rows, nextPageKey } = await this.pages.read({
      list: 'fires',
      filters: { facilityId },
      pageKey,
      pageSize,
      read: (range) => this.triggers.listFires({ facilityId, ...range }),
      position: ({ scheduledAt }) => [scheduledAt],
      bytes: (fire) => jsonBytes(fireBody(fire)),
    });
    return { fires: rows.map(fireBody), nextPageKey };
  }

  @Post(':facilityId/commands/pause')
  @ApiOperation({
    operationId: 'pauseTrigger',
    summary: 'Pause a trigger',
    description: 'Nothing fires until it is resumed.',
  })
  @CommandResponses('pause', 'PAUSED')
  @HttpCode(200)
  @RequirePersona(Persona.InternalPartner)
  async pause(@Param() { facilityId }: TriggerParams, @CurrentCaller() caller: Caller): Promise<TriggerDto> {
    return triggerBody(await this.service.pause(facilityId, caller));
  }

  @Post(':facilityId/commands/resume')
  @ApiOperation({
    operationId: 'resumeTrigger',
    summary: 'Resume a trigger',
    description:
      'Occurrences missed during the pause are handled like late ones: up to 1.5 hours late, every occurrence fires; later, only the latest one.',
  })
  @CommandResponses('resume', 'WAITING')
  @HttpCode(200)
  @RequirePersona(Persona.InternalPartner)
  async resume(@Param() { facilityId }: TriggerParams, @CurrentCaller() caller: Caller): Promise<TriggerDto> {
    return triggerBody(await this.service.resume(facilityId, caller));
  }
}
