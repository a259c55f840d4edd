import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { ApiBody, ApiOkResponse, ApiOperation, ApiTags, PagedQuery } from '@platform/open-api';
import { validatedBy } from '@platform/service-defaults';
import { CallerScope } from '../access/caller-scope.service';
import { MANAGERS, PERFORMERS } from '../access/route-personas';
import { KeysetPages, jsonBytes } from '../paging/keyset-page';
import { TaskError } from '../problems/task-error';
import {
  ForbiddenResponse,
  InvalidFieldResponse,
  TaskProblemResponse,
} from '../problems/task-problem.filter';
import { BoundedChange } from '../slots/bounded-change.decorator';
import { BoundedRead } from '../slots/bounded-read.decorator';
import {
  CANCELLED,
  COMPLETED,
  COMPLETE_EXAMPLES,
  CancelInstanceDto,
  CompleteInstanceDto,
  INSTANCE_ID,
  InstanceDto,
  InstancePageDto,
  InstanceParams,
  ListInstancesDto,
  PENDING,
  instanceBody,
  optionalCancelInstanceBody,
  optionalCompleteInstanceBody,
} from './instance.dto';
import type { CancelInstanceRequest, CompleteInstanceRequest } from './instance.dto';
import { InstancesRepository } from './instances.repository';
import { InstancesService } from './instances.service';

const PATH = `/Instances/${INSTANCE_ID}`;
const COMPLETE = `${PATH}/commands/complete`;
const CANCEL = `${PATH}/commands/cancel`;
const NO_INSTANCE = 'There is no such task instance.';

@Controller('Instances')
@ApiTags('Instances')
@RequirePersona(...PERFORMERS)
export class InstancesController {
  constructor(
    private readonly service: InstancesService,
    private readonly instances: InstancesRepository,
    private readonly scope: CallerScope,
    private readonly pages: KeysetPages,
  ) {}

  @Post(':id/commands/complete')
  @ApiOperation({
    operationId: 'completeInstance',
    summary: 'Complete a task instance',
    description:
      'TaskInstanceCompletedEvent is published once. Completing again changes nothing and returns the same instance.',
  })
  @ApiBody({ type: CompleteInstanceDto, required: false, examples: COMPLETE_EXAMPLES })
  @ApiOkResponse({
    description: 'Completed, now or before.',
    type: InstanceDto.Output,
    examples: { completed: { summary: 'Completed', value: COMPLETED } },
  })
  @InvalidFieldResponse(COMPLETE, 'completedAt', 'Invalid ISO datetime')
  @TaskProblemResponse(
    '`completedAt` is out of range.',
    COMPLETE,
    'completed-in-the-future',
    'completed-before-creation',
    'instant-out-of-range',
  )
  @ForbiddenResponse(COMPLETE)
  @TaskProblemResponse(NO_INSTANCE, COMPLETE, 'instance-not-found')
  @TaskProblemResponse('It is cancelled.', COMPLETE, 'instance-not-completable')
  @BoundedChange(COMPLETE)
  @HttpCode(200)
  async complete(
    @Param() { id }: InstanceParams,
    @Body(validatedBy(optionalCompleteInstanceBody)) request: CompleteInstanceRequest,
    @CurrentCaller() caller: Caller,
  ): Promise<InstanceDto> {
    return instanceBody(await this.service.complete(id, request, caller));
  }

  @Post(':id/commands/cancel')
  @ApiOperation({
    operationId: 'cancelInstance',
    summary: 'Cancel a task instance',
    description:
      'For good: nothing is generated at its time again. TaskInstanceCancelledEvent is published once. Cancelling again changes nothing and returns the same instance.',
  })
  @ApiBody({
    type: CancelInstanceDto,
    required: false,
    examples: {
      closed: { summary: 'With a reason', value: { reason: 'The building is closed that week.' } },
    },
  })
  @ApiOkResponse({
    description: 'Cancelled, now or before.',
    type: InstanceDto.Output,
    examples: { cancelled: { summary: 'Cancelled', value: CANCELLED } },
  })
  @InvalidFieldResponse('/Instances/1/commands/cancel', 'id', 'Invalid GUID')
  @ForbiddenResponse(CANCEL)
  @TaskProblemResponse(NO_INSTANCE, CANCEL, 'instance-not-found')
  @TaskProblemResponse('It is completed.', CANCEL, 'instance-not-cancellable')
  @BoundedChange(CANCEL)
  @HttpCode(200)
  @RequirePersona(...MANAGERS)
  async cancel(
    @Param() { id }: InstanceParams,
    @Body(validatedBy(optionalCancelInstanceBody)) request: CancelInstanceRequest,
    @CurrentCaller() caller: Caller,
  ): Promise<InstanceDto> {
    return instanceBody(await this.service.cancel(id, request, caller));
  }

  @Get()
  @ApiOperation({
    operationId: 'listInstances',
    summary: 'List task instances',
    description: 'Ordered by due time.',
  })
  @PagedQuery()
  @ApiOkResponse({
    description: 'One page.',
    type: InstancePageDto.Output,
    examples: {
      last: { summary: 'The last page', value: { instances: [PENDING, COMPLETED], nextPageKey: null } },
    },
  })
  @InvalidFieldResponse('/Instances', 'dueFrom', 'Invalid ISO datetime')
  @ForbiddenResponse('/Instances')
  @BoundedRead('/Instances')
  async list(
    @Query() { facilityId, pageKey, pageSize, ...filters }: ListInstancesDto,
    @CurrentCaller() caller: Caller,
  ): Promise<InstancePageDto> {
    const scope = await this.scope.forList(caller, PERFORMERS, facilityId);
    const { rows, nextPageKey } = await this.pages.read({
      list: 'instances',
      filters: { facilityId, ...filters },
      pageKey,
      pageSize,
      scanEnd: (after) => this.instances.scanEnd({ scope, ...filters, after }),
      read: (range) => this.instances.list({ scope, ...filters, ...range }),
      position: ({ dueAt, taskInstanceId }) => [dueAt, taskInstanceId],
      bytes: (instance) => jsonBytes(instanceBody({ ...instance, template: null }), instance.template),
    });
    return { instances: rows.map(instanceBody), nextPageKey };
  }

  @Get(':id')
  @ApiOperation({ operationId: 'getInstance', summary: 'Get one task instance' })
  @ApiOkResponse({
    description: 'The task instance.',
    type: InstanceDto.Output,
    examples: {
      pending: { summary: 'Not done yet', value: PENDING },
      completed: { summary: 'Done', value: COMPLETED },
    },
  })
  @InvalidFieldResponse('/Instances/1', 'id', 'Invalid GUID')
  @ForbiddenResponse(PATH)
  @TaskProblemResponse(NO_INSTANCE, PATH, 'instance-not-found')
  @BoundedRead(PATH)
  async get(@Param() { id }: InstanceParams, @CurrentCaller() caller: Caller): Promise<InstanceDto> {
    const instance = await this.instances.find(id);
    if (!instance) throw new TaskError('instance-not-found');
    await this.scope.require(caller, PERFORMERS, instance.facilityId);
    return instanceBody(instance);
  }
}
