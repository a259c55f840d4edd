import { Body, Controller, Get, HttpCode, Inject, Param, Post, Query } from '@nestjs/common';
import { type Caller, CurrentCaller, RequirePersona } from '@platform/access-tokens';
import { ApiBody, ApiOkResponse, ApiOperation, ApiQuery, ApiTags } from '@platform/open-api';
import { CLOCK } from '@platform/service-defaults';
import { type Clock, DAY_MS } from '@platform/time';
import { CallerScope } from '../access/caller-scope.service';
import { MANAGERS } from '../access/route-personas';
import { CalendarsRepository } from '../calendars/calendars.repository';
import { withinLimits } from '../fields/fields';
import { TaskError } from '../problems/task-error';
import {
  ForbiddenResponse,
  InvalidFieldResponse,
  TaskProblemResponse,
} from '../problems/task-problem.filter';
import { BoundedRead } from '../slots/bounded-read.decorator';
import { ListOccurrencesDto, OCCURRENCES, occurrencesBody, OccurrencesDto } from './occurrence.dto';
import {
  checkRecurrence,
  dueBetween,
  readableRecurrence,
  type RecurrenceText,
} from '../recurrence/recurrence';
import { PreviewScheduleDto, SCHEDULE_ID, ScheduleParams } from './schedule.dto';
import { SchedulesRepository } from '../stored-schedules/schedules.repository';

const PATH = `/Schedules/${SCHEDULE_ID}/occurrences`;
const PREVIEW = '/Schedules/commands/preview';
/** Maximum span: a schedule that is rarely due is computed day by day. */
const MAX_SPAN_MS = 10 * 366 * DAY_MS;
const EXAMPLES = { spring: { summary: '2:30 on the day on which clocks go forward', value: OCCURRENCES } };

interface Span {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly limit: number;
}

/** Lists the occurrences of schedules. They are computed, independent of generated instances. */
@Controller('Schedules')
@ApiTags('Schedules')
@RequirePersona(...MANAGERS)
export class OccurrencesController {
  constructor(
    private readonly schedules: SchedulesRepository,
    private readonly calendars: CalendarsRepository,
    private readonly scope: CallerScope,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @Get(':id/occurrences')
  @ApiOperation({
    operationId: 'listOccurrences',
    summary: 'List the occurrences of a schedule',
    description: 'By the current settings of the schedule and its calendar, in any state.',
  })
  @ApiQuery({
    name: 'limit',
    required: false,
    description: 'Maximum number of occurrences.',
    schema: { type: 'integer', minimum: 1, maximum: 1_000, default: 100 },
  })
  @ApiOkResponse({ description: 'Ascending.', type: OccurrencesDto.Output, examples: EXAMPLES })
  @InvalidFieldResponse(PATH, 'from', 'Invalid ISO datetime')
  @ForbiddenResponse(PATH)
  @TaskProblemResponse('There is no such schedule.', PATH, 'schedule-not-found')
  @TaskProblemResponse(
    'An instant is out of range, or the schedule cannot be evaluated.',
    PATH,
    'instant-out-of-range',
    'schedule-not-evaluable',
  )
  @BoundedRead(PATH)
  async list(
    @Param() { id }: ScheduleParams,
    @Query() span: ListOccurrencesDto,
    @CurrentCaller() caller: Caller,
  ): Promise<OccurrencesDto> {
    const schedule = await this.schedules.find(id);
    if (!schedule) throw new TaskError('schedule-not-found');
    await this.scope.require(caller, MANAGERS, schedule.facilityId);
    return this.occurrences(schedule, span);
  }

  @Post('commands/preview')
  @ApiOperation({
    operationId: 'previewSchedule',
    summary: 'List the occurrences of a schedule before it is created',
    description: 'Nothing is stored.',
  })
  @ApiBody({
    type: PreviewScheduleDto,
    examples: {
      night: {
        summary: 'At half past two, in spring',
        value: { schedule: '30 2 * * *', timeZone: 'Europe/Berlin', from: '2026-03-28T00:00:00Z', limit: 2 },
      },
    },
  })
  @ApiOkResponse({ description: 'Ascending.', type: OccurrencesDto.Output, examples: EXAMPLES })
  @InvalidFieldResponse(PREVIEW, 'schedule', 'must have five fields separated by single spaces')
  @TaskProblemResponse(
    'The schedule is out of range.',
    PREVIEW,
    'instant-out-of-range',
    'schedule-ends-before-start',
    'calendar-unknown',
  )
  @BoundedRead(PREVIEW)
  @HttpCode(200)
  preview(@Body() request: PreviewScheduleDto): Promise<OccurrencesDto> {
    checkRecurrence(request, 1);
    return this.occurrences(request, request);
  }

  private async occurrences(
    text: Omit<RecurrenceText, 'excludedDates'> & { calendarId: string | null },
    { from, to, limit }: Span,
  ): Promise<OccurrencesDto> {
    const first = withinLimits(from === undefined ? this.clock.now() : new Date(from));
    const latest = new Date(first.getTime() + MAX_SPAN_MS);
    const last = to === undefined ? latest : withinLimits(new Date(to));
    if (last > latest) throw new TaskError('span-too-long');
    const excludedDates =
      text.calendarId === null ? null : await this.calendars.excludedDates(text.calendarId);
    const recurrence = readableRecurrence({ ...text, excludedDates });
    const [after, until] = [new Date(first.getTime() - 1), new Date(last.getTime() - 1)];
    return occurrencesBody(recurrence, dueBetween(recurrence, after, until, limit));
  }
}
