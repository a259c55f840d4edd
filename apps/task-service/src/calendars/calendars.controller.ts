import {
  applyDecorators,
  Body,
  Controller,
  Delete,
  Get,
  Headers,
  HttpCode,
  Param,
  Put,
  Query,
  Res,
} from '@nestjs/common';
import { type Caller, CurrentCaller, RequirePersona } from '@platform/access-tokens';
import {
  ApiBody,
  ApiHeaders,
  ApiOkResponse,
  ApiOperation,
  ApiResponse,
  ApiTags,
  PagedQuery,
} from '@platform/open-api';
import { Persona } from '@platform/personas';
import { entityTag, entityTagsOf, type Preconditions } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import type { EntityManager } from 'typeorm';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { KeysetPages, jsonBytes } from '../paging/keyset-page';
import { TaskError } from '../problems/task-error';
import { InvalidFieldResponse, TaskProblemResponse } from '../problems/task-problem.filter';
import { ChangeSlots } from '../slots/change-slots.service';
import { BoundedChange } from '../slots/bounded-change.decorator';
import { BoundedRead } from '../slots/bounded-read.decorator';
import {
  CALENDAR_ID,
  CalendarDto,
  CalendarPageDto,
  CalendarParams,
  ETAG,
  HOLIDAYS,
  ListCalendarsDto,
  PutCalendarDto,
  calendarBody,
} from './calendar.dto';
import { type Calendar, calendarRevision } from './calendar.entity';
import { CalendarRemovalService } from './calendar-removal.service';
import { CalendarRolloutService } from './calendar-rollout.service';
import { CalendarsRepository } from './calendars.repository';

const PATH = `/Calendars/${CALENDAR_ID}`;
const EXAMPLES = { holidays: { summary: 'Holidays', value: HOLIDAYS } };
const { name, excludedDates } = HOLIDAYS;

type ConditionalHeaders = Readonly<Partial<Record<'if-match' | 'if-none-match', string>>>;

/**
 * Parses If-Match and If-None-Match.
 * @throws {ProblemException} 400 if one is malformed: ignoring it could lose a write
 */
function conditionsOf(headers: ConditionalHeaders): Preconditions {
  return {
    ifMatch: entityTagsOf('If-Match', headers['if-match']),
    ifNoneMatch: entityTagsOf('If-None-Match', headers['if-none-match']),
  };
}

const WriteConditions = (): MethodDecorator =>
  applyDecorators(
    ApiHeaders([
      {
        name: 'If-Match',
        description:
          'Go on only if the calendar has one of these ETags (`*`: any). 503 with the type `urn:platform:problem:outcome-unknown`: this change may have been committed, and another client has changed the calendar since.',
      },
      {
        name: 'If-None-Match',
        description: 'Go on only if the calendar has none of these ETags. `*` creates only.',
      },
    ]),
    TaskProblemResponse('A condition does not hold: nothing was changed.', PATH, 'calendar-changed'),
    BoundedChange(PATH),
  );

@Controller('Calendars')
@ApiTags('Calendars')
@RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
export class CalendarsController {
  constructor(
    private readonly calendars: CalendarsRepository,
    private readonly rollout: CalendarRolloutService,
    private readonly removal: CalendarRemovalService,
    private readonly outbound: OutboundProxy,
    private readonly pages: KeysetPages,
    private readonly slots: ChangeSlots,
  ) {}

  @Put(':id')
  @ApiOperation({
    operationId: 'putCalendar',
    summary: 'Create or replace a calendar',
    description:
      'Future instances of the schedules that use it are updated within seconds, or in steps if thousands of facilities use it. A PUT that changes nothing keeps the ETag.',
  })
  @WriteConditions()
  @ApiBody({
    type: PutCalendarDto,
    examples: { holidays: { summary: 'Holidays', value: { name, excludedDates } } },
  })
  @ApiOkResponse({
    description: 'The calendar.',
    type: CalendarDto.Output,
    headers: ETAG,
    examples: EXAMPLES,
  })
  @InvalidFieldResponse(PATH, 'excludedDates.0', 'Invalid ISO date')
  @RequirePersona(Persona.InternalPartner)
  async put(
    @Param() { id }: CalendarParams,
    @Body() request: PutCalendarDto,
    @Headers() headers: ConditionalHeaders,
    @CurrentCaller() caller: Caller,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<CalendarDto> {
    const conditions = conditionsOf(headers);
    const write = async (manager: EntityManager, unconfirmed: Calendar | null) => {
      const wanted = { calendarId: id, ...request };
      const stored = await this.calendars.put(manager, wanted, { conditions, unconfirmed });
      // An earlier attempt whose commit was not confirmed has recorded its rollout in the same transaction.
      if (stored.hasOtherDates) await this.rollout.begin(manager, id, stored.calendar.changedAt);
      return stored.calendar;
    };
    const calendar = await this.slots.run(id, caller, () => this.outbound.transaction(write));
    return calendarResponse(reply, calendar);
  }

  @Get()
  @ApiOperation({
    operationId: 'listCalendars',
    summary: 'List calendars',
    description: 'Ordered by identifier.',
  })
  @PagedQuery()
  @ApiOkResponse({
    description: 'One page.',
    type: CalendarPageDto.Output,
    examples: { last: { summary: 'The last page', value: { calendars: [HOLIDAYS], nextPageKey: null } } },
  })
  @InvalidFieldResponse('/Calendars', 'pageSize', 'must be an integer from 1 to 1000')
  @BoundedRead('/Calendars')
  async list(@Query() { pageKey, pageSize }: ListCalendarsDto): Promise<CalendarPageDto> {
    const { rows, nextPageKey } = await this.pages.read({
      list: 'calendars',
      filters: {},
      pageKey,
      pageSize,
      read: (range) => this.calendars.list(range),
      position: ({ calendarId }) => [calendarId],
      bytes: (calendar) => jsonBytes(calendarBody(calendar)),
    });
    return { calendars: rows.map(calendarBody), nextPageKey };
  }

  @Get(':id')
  @ApiOperation({ operationId: 'getCalendar', summary: 'Get one calendar' })
  @ApiOkResponse({
    description: 'The calendar.',
    type: CalendarDto.Output,
    headers: ETAG,
    examples: EXAMPLES,
  })
  @InvalidFieldResponse('/Calendars/1', 'id', 'Invalid GUID')
  @TaskProblemResponse('There is no such calendar.', PATH, 'calendar-not-found')
  @BoundedRead(PATH)
  async get(
    @Param() { id }: CalendarParams,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<CalendarDto> {
    const calendar = await this.calendars.find(id);
    if (!calendar) throw new TaskError('calendar-not-found');
    return calendarResponse(reply, calendar);
  }

  @Delete(':id')
  @ApiOperation({
    operationId: 'deleteCalendar',
    summary: 'Delete a calendar that no schedule uses',
    description:
      'Clears it from removed schedules, at most 50,000 per request. If more of them name it, the response is 503 with `Retry-After`, and the next request continues.',
  })
  @ApiResponse({ status: 204, description: 'Deleted.' })
  @InvalidFieldResponse('/Calendars/1', 'id', 'Invalid GUID')
  @TaskProblemResponse('There is no such calendar.', PATH, 'calendar-not-found')
  @TaskProblemResponse('A schedule that is not removed uses it.', PATH, 'calendar-in-use')
  @TaskProblemResponse(
    'The database cannot be reached, too much is under way, or more removed schedules name it than one request changes.',
    PATH,
    'calendar-still-named',
  )
  @HttpCode(204)
  @RequirePersona(Persona.InternalPartner)
  @WriteConditions()
  async delete(
    @Param() { id }: CalendarParams,
    @Headers() headers: ConditionalHeaders,
    @CurrentCaller() caller: Caller,
  ): Promise<void> {
    const conditions = conditionsOf(headers);
    const isDeleted = await this.slots.run(id, caller, () => this.removal.delete(id, conditions));
    if (!isDeleted) throw new TaskError('calendar-not-found');
  }
}

/** Sets the ETag header and returns the body of the response. */
function calendarResponse(reply: FastifyReply, calendar: Calendar): CalendarDto {
  void reply.header('etag', entityTag(calendarRevision(calendar)));
  return calendarBody(calendar);
}
