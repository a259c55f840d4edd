import { Body, Controller, Get, Headers, Inject, Param, Post, Query, Res } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { Documented } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { CallerScope } from '../access/caller-scope.service';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { KeysetPages } from '../paging/keyset-page';
import { TaskError } from '../problems/task-error';
import { CREATE_SCHEDULE, GET_SCHEDULE, LIST_SCHEDULES } from './schedule-docs';
import { CreateScheduleDto, ListSchedulesDto, ScheduleParams, scheduleBody } from './schedule.dto';
import type { ScheduleBody } from './schedule.dto';
import { SchedulesRepository } from './schedules.repository';
import { SchedulesService } from './schedules.service';

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,200}$/;

@Controller('Schedules')
@RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
export class SchedulesController {
  constructor(
    private readonly service: SchedulesService,
    private readonly schedules: SchedulesRepository,
    private readonly scope: CallerScope,
    private readonly pages: KeysetPages,
    @Inject(TASK_CONFIG) private readonly config: TaskServiceConfig,
  ) {}

  @Post()
  @Documented(CREATE_SCHEDULE)
  async create(
    @Body() request: CreateScheduleDto,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
    @CurrentCaller() caller: Caller,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ScheduleBody> {
    if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey))
      throw new TaskError('idempotency-key-invalid');
    const schedule = await this.service.create(request, caller, idempotencyKey ?? null);
    const basePath = this.config.TASK_BASE_PATH.replace(/\/$/, '');
    void reply.header('location', `${basePath}/Schedules/${schedule.scheduleId}`);
    return scheduleBody(schedule);
  }

  @Get()
  @Documented(LIST_SCHEDULES)
  async list(
    @Query() { facilityId, status, pageKey, pageSize }: ListSchedulesDto,
    @CurrentCaller() caller: Caller,
  ): Promise<{ schedules: ScheduleBody[]; nextPageKey: string | null }> {
    const scope = await this.scope.forList(caller, facilityId);
    const { rows, nextPageKey } = await this.pages.read({
      list: 'schedules',
      filters: { facilityId, status },
      pageKey,
      pageSize,
      read: (range) => this.schedules.list({ scope, status, ...range }),
      position: ({ createdAt, scheduleId }) => [createdAt, scheduleId],
    });
    return { schedules: rows.map(scheduleBody), nextPageKey };
  }

  @Get(':id')
  @Documented(GET_SCHEDULE)
  async get(@Param() { id }: ScheduleParams, @CurrentCaller() caller: Caller): Promise<ScheduleBody> {
    const schedule = await this.schedules.find(id);
    if (!schedule) throw new TaskError('schedule-not-found');
    await this.scope.require(caller, schedule.facilityId);
    return scheduleBody(schedule);
  }
}
