import { Body, Controller, Get, Headers, Inject, Param, Post, Query, Res } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { Documented, SignedCursor } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { DataSource } from 'typeorm';
import { CallerScope } from '../access/caller-scope.service';
import { TaskError } from '../problems/task-error';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { PAGE_CURSOR, keysetPage, listName } from '../paging/keyset-page';
import { CreateSchedule } from './create-schedule.handler';
import { findSchedule } from './find-schedule.query';
import { listSchedules } from './list-schedules.query';
import { scheduleBody } from './schedule';
import type { ScheduleBody } from './schedule';
import { CREATE_SCHEDULE, GET_SCHEDULE, LIST_SCHEDULES } from './schedule-docs';
import { CreateScheduleDto, ListSchedulesDto, ScheduleParams } from './schedule.dto';

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,200}$/;

@Controller('Schedules')
@RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
export class SchedulesController {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly createSchedule: CreateSchedule,
    private readonly scope: CallerScope,
    @Inject(PAGE_CURSOR) private readonly cursor: SignedCursor,
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
    const schedule = await this.createSchedule.execute(request, caller, idempotencyKey ?? null);
    const basePath = this.config.TASK_BASE_PATH.replace(/\/$/, '');
    void reply.header('location', `${basePath}/Schedules/${schedule.scheduleId}`);
    return scheduleBody(schedule);
  }

  @Get()
  @Documented(LIST_SCHEDULES)
  async list(
    @Query() query: ListSchedulesDto,
    @CurrentCaller() caller: Caller,
  ): Promise<{ schedules: ScheduleBody[]; nextPageKey: string | null }> {
    const { facilityId, status, pageKey, pageSize } = query;
    const scope = await this.scope.forList(caller, facilityId);
    const list = listName('schedules', { facilityId, status });
    const after = pageKey === undefined ? [] : this.cursor.decode(list, pageKey);
    const rows = await listSchedules(this.dataSource, { scope, status, after, limit: pageSize + 1 });
    const page = keysetPage(rows, {
      pageSize,
      cursor: this.cursor,
      list,
      position: ({ createdAt, scheduleId }) => [createdAt, scheduleId],
    });
    return { schedules: page.rows.map(scheduleBody), nextPageKey: page.nextPageKey };
  }

  @Get(':id')
  @Documented(GET_SCHEDULE)
  async get(@Param() { id }: ScheduleParams, @CurrentCaller() caller: Caller): Promise<ScheduleBody> {
    const schedule = await findSchedule(this.dataSource, id);
    if (!schedule) throw new TaskError('schedule-not-found');
    await this.scope.require(caller, schedule.facilityId);
    return scheduleBody(schedule);
  }
}
