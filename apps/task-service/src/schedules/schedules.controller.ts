import {
  applyDecorators,
  Body,
  Controller,
  Get,
  Headers,
  Inject,
  Param,
  Post,
  Query,
  Res,
} from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import {
  ApiBody,
  ApiCreatedResponse,
  ApiHeader,
  ApiOkResponse,
  ApiOperation,
  ApiTags,
  PagedQuery,
} from '@platform/open-api';
import type { FastifyReply } from 'fastify';
import { CallerScope } from '../access/caller-scope.service';
import { MANAGERS } from '../access/route-personas';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { KeysetPages, jsonBytes } from '../paging/keyset-page';
import { TaskError } from '../problems/task-error';
import {
  ForbiddenResponse,
  InvalidFieldResponse,
  TaskProblemResponse,
} from '../problems/task-problem.filter';
import { BoundedRead } from '../slots/bounded-read.decorator';
import {
  CREATE_EXAMPLES,
  CreateScheduleDto,
  ETAG,
  ListSchedulesDto,
  SCHEDULE_ID,
  ScheduleDto,
  SchedulePageDto,
  ScheduleParams,
  WEEKLY_ROUND,
} from './schedule.dto';
import { SchedulesRepository } from '../stored-schedules/schedules.repository';
import { scheduleBody, scheduleResponse } from './schedule-response';
import { SchedulesService } from './schedules.service';

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,200}$/;
const IDEMPOTENCY_KEY_HEADER = {
  name: 'Idempotency-Key',
  description:
    '1 to 200 visible ASCII characters, chosen by the client. A repeated request with the same key returns the schedule of the first.',
  schema: { type: 'string', minLength: 1, maxLength: 200, pattern: '^[\\x21-\\x7e]+$' },
  example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
} as const;
const REFUSALS = [
  ...(['idempotency-key-reused', 'instant-out-of-range', 'schedule-ends-before-start'] as const),
  ...(['schedule-too-frequent', 'schedule-limit-reached', 'instance-limit-reached'] as const),
  'calendar-unknown',
] as const;
const PATH = `/Schedules/${SCHEDULE_ID}`;
const LOCATION = {
  Location: {
    description: 'Path of the schedule.',
    schema: { type: 'string', format: 'uri-reference' },
    required: true,
    example: PATH,
  },
} as const;

const CreationRefusals = (): MethodDecorator =>
  applyDecorators(
    TaskProblemResponse(
      'The key was used before with another request, or a limit is exceeded.',
      '/Schedules',
      ...REFUSALS,
    ),
    TaskProblemResponse(
      'The facility has reached its limit of new schedules per hour, or too many are being created at once. `Retry-After` says when to retry.',
      '/Schedules',
      'schedules-created-too-often',
      'too-many-changes-at-once',
    ),
  );

@Controller('Schedules')
@ApiTags('Schedules')
@RequirePersona(...MANAGERS)
export class SchedulesController {
  constructor(
    private readonly service: SchedulesService,
    private readonly schedules: SchedulesRepository,
    private readonly scope: CallerScope,
    private readonly pages: KeysetPages,
    @Inject(TASK_CONFIG) private readonly config: TaskServiceConfig,
  ) {}

  @Post()
  @ApiOperation({
    operationId: 'createSchedule',
    summary: 'Create a schedule',
    description:
      'Stored together with its ScheduleCreatedEvent, which is published later if the broker cannot be reached now. Customers and owners: only for their facilities.',
  })
  @ApiHeader(IDEMPOTENCY_KEY_HEADER)
  @ApiBody({ type: CreateScheduleDto, examples: CREATE_EXAMPLES })
  @ApiCreatedResponse({
    description: 'Created, or created before with this Idempotency-Key.',
    type: ScheduleDto.Output,
    examples: { created: { summary: 'The schedule', value: WEEKLY_ROUND } },
    headers: { ...LOCATION, ...ETAG },
  })
  @InvalidFieldResponse('/Schedules', 'schedule', 'must have five fields separated by single spaces')
  @ForbiddenResponse('/Schedules')
  @CreationRefusals()
  async create(
    @Body() request: CreateScheduleDto,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
    @CurrentCaller() caller: Caller,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ScheduleDto> {
    if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey))
      throw new TaskError('idempotency-key-invalid');
    const schedule = await this.service.create(request, caller, idempotencyKey ?? null);
    const basePath = this.config.TASK_BASE_PATH.replace(/\/$/, '');
    void reply.header('location', `${basePath}/Schedules/${schedule.scheduleId}`);
    // A repeated request returns the current schedule with its own `releasing`. A new schedule has nothing to
    // cancel.
    return scheduleResponse(reply, { releasing: 0, ...schedule });
  }

  @Get()
  @ApiOperation({
    operationId: 'listSchedules',
    summary: 'List schedules',
    description: 'Ordered by creation.',
  })
  @PagedQuery()
  @ApiOkResponse({
    description: 'One page.',
    type: SchedulePageDto.Output,
    examples: {
      last: { summary: 'The last page', value: { schedules: [WEEKLY_ROUND], nextPageKey: null } },
    },
  })
  @InvalidFieldResponse('/Schedules', 'pageSize', 'must be an integer from 1 to 1000')
  @ForbiddenResponse('/Schedules')
  @BoundedRead('/Schedules')
  async list(
    @Query() { facilityId, status, pageKey, pageSize }: ListSchedulesDto,
    @CurrentCaller() caller: Caller,
  ): Promise<SchedulePageDto> {
    const scope = await this.scope.forList(caller, MANAGERS, facilityId);
    const { rows, nextPageKey } = await this.pages.read({
      list: 'schedules',
      filters: { facilityId, status },
      pageKey,
      pageSize,
      read: (range) => this.schedules.list({ scope, status, ...range }),
      position: ({ createdAt, scheduleId }) => [createdAt, scheduleId],
      bytes: (schedule) => jsonBytes(scheduleBody({ ...schedule, template: null }), schedule.template),
    });
    return { schedules: rows.map(scheduleBody), nextPageKey };
  }

  @Get(':id')
  @ApiOperation({ operationId: 'getSchedule', summary: 'Get one schedule' })
  @ApiOkResponse({
    description: 'The schedule.',
    type: ScheduleDto.Output,
    examples: { one: { summary: 'A weekly round', value: WEEKLY_ROUND } },
    headers: ETAG,
  })
  @InvalidFieldResponse('/Schedules/1', 'id', 'Invalid GUID')
  @ForbiddenResponse(PATH)
  @TaskProblemResponse('There is no such schedule.', PATH, 'schedule-not-found')
  @BoundedRead(PATH)
  async get(
    @Param() { id }: ScheduleParams,
    @CurrentCaller() caller: Caller,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ScheduleDto> {
    const schedule = await this.schedules.show(id);
    if (!schedule) throw new TaskError('schedule-not-found');
    await this.scope.require(caller, MANAGERS, schedule.facilityId);
    return scheduleResponse(reply, schedule);
  }
}
