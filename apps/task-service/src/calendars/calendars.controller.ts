import { Body, Controller, Delete, Get, HttpCode, Param, Put, Query } from '@nestjs/common';
import { RequirePersona } from '@platform/access-tokens';
import { ApiBody, ApiOkResponse, ApiOperation, ApiResponse, ApiTags, PagedQuery } from '@platform/open-api';
import { Persona } from '@platform/personas';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { KeysetPages } from '../paging/keyset-page';
import { InvalidFieldResponse, TaskError, TaskProblemResponse } from '../problems/task-problem.filter';
import { generationRequested } from '../scheduler/due-fire';
import {
  CALENDAR_ID,
  CalendarDto,
  CalendarPageDto,
  CalendarParams,
  HOLIDAYS,
  ListCalendarsDto,
  PutCalendarDto,
  calendarBody,
} from './calendar.dto';
import { CalendarsRepository } from './calendars.repository';

const PATH = `/Calendars/${CALENDAR_ID}`;
const EXAMPLES = { holidays: { summary: 'Holidays', value: HOLIDAYS } };
const { name, excludedDates } = HOLIDAYS;

@Controller('Calendars')
@ApiTags('Calendars')
@RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
export class CalendarsController {
  constructor(
    private readonly calendars: CalendarsRepository,
    private readonly outbound: OutboundProxy,
    private readonly pages: KeysetPages,
  ) {}

  @Put(':id')
  @ApiOperation({
    operationId: 'putCalendar',
    summary: 'Create or replace a calendar',
    description: 'The instances still to come of the schedules that use it follow within moments.',
  })
  @ApiBody({
    type: PutCalendarDto,
    examples: { holidays: { summary: 'Holidays', value: { name, excludedDates } } },
  })
  @ApiOkResponse({ description: 'The calendar.', type: CalendarDto.Output, examples: EXAMPLES })
  @InvalidFieldResponse(PATH, 'excludedDates.0', 'Invalid ISO date')
  @RequirePersona(Persona.InternalPartner)
  async put(@Param() { id }: CalendarParams, @Body() request: PutCalendarDto): Promise<CalendarDto> {
    const calendar = await this.outbound.transaction(async (manager) => {
      const stored = await this.calendars.put(manager, { calendarId: id, ...request });
      const facilities = await this.calendars.facilitiesToRegenerate(manager, id);
      const firedAt = stored.changedAt;
      await this.outbound.store(
        manager,
        facilities.map((facilityId) => generationRequested(facilityId, { firedAt })),
      );
      return stored;
    });
    return calendarBody(calendar);
  }

  @Get()
  @ApiOperation({
    operationId: 'listCalendars',
    summary: 'List calendars',
    description: 'In the order of their identifiers.',
  })
  @PagedQuery()
  @ApiOkResponse({
    description: 'One page.',
    type: CalendarPageDto.Output,
    examples: { last: { summary: 'The last page', value: { calendars: [HOLIDAYS], nextPageKey: null } } },
  })
  @InvalidFieldResponse('/Calendars', 'pageSize', 'must be an integer from 1 to 1000')
  async list(@Query() { pageKey, pageSize }: ListCalendarsDto): Promise<CalendarPageDto> {
    const { rows, nextPageKey } = await this.pages.read({
      ...{ list: 'calendars', filters: {}, pageKey, pageSize },
      read: (range) => this.calendars.list(range),
      position: ({ calendarId }) => [calendarId],
    });
    return { calendars: rows.map(calendarBody), nextPageKey };
  }

  @Get(':id')
  @ApiOperation({ operationId: 'getCalendar', summary: 'Get one calendar' })
  @ApiOkResponse({ description: 'The calendar.', type: CalendarDto.Output, examples: EXAMPLES })
  @InvalidFieldResponse('/Calendars/1', 'id', 'Invalid GUID')
  @TaskProblemResponse('There is no such calendar.', PATH, 'calendar-not-found')
  async get(@Param() { id }: CalendarParams): Promise<CalendarDto> {
    const calendar = await this.calendars.find(id);
    if (!calendar) throw new TaskError('calendar-not-found');
    return calendarBody(calendar);
  }

  @Delete(':id')
  @ApiOperation({ operationId: 'deleteCalendar', summary: 'Delete a calendar that no schedule uses' })
  @ApiResponse({ status: 204, description: 'Deleted.' })
  @InvalidFieldResponse('/Calendars/1', 'id', 'Invalid GUID')
  @TaskProblemResponse('There is no such calendar.', PATH, 'calendar-not-found')
  @TaskProblemResponse('A schedule that is not removed uses it.', PATH, 'calendar-in-use')
  @HttpCode(204)
  @RequirePersona(Persona.InternalPartner)
  async delete(@Param() { id }: CalendarParams): Promise<void> {
    const isDeleted = await this.outbound.transaction((manager) => this.calendars.delete(manager, id));
    if (!isDeleted) throw new TaskError('calendar-not-found');
  }
}
