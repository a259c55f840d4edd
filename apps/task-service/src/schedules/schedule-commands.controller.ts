import {
  applyDecorators,
  Body,
  Controller,
  Headers,
  HttpCode,
  Param,
  Patch,
  Post,
  Res,
} from '@nestjs/common';
import { type Caller, CurrentCaller, RequirePersona } from '@platform/access-tokens';
import { ApiBody, ApiHeader, ApiOkResponse, ApiOperation, ApiTags } from '@platform/open-api';
import { entityTagsOf } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { MANAGERS } from '../access/route-personas';
import {
  ForbiddenResponse,
  InvalidFieldResponse,
  TaskProblemResponse,
} from '../problems/task-problem.filter';
import { BoundedChange } from '../slots/bounded-change.decorator';
import {
  ETAG,
  SCHEDULE_ID,
  ScheduleDto,
  ScheduleParams,
  UPDATE_EXAMPLES,
  UpdateScheduleDto,
  WEEKLY_ROUND,
} from './schedule.dto';
import type { ScheduleCommand, ScheduleStatus } from '../stored-schedules/schedule-states';
import { scheduleResponse } from './schedule-response';
import { ScheduleLifecycleService } from './schedule-lifecycle.service';

const PATH = `/Schedules/${SCHEDULE_ID}`;

function ChangeResponses(path: string, status: ScheduleStatus): MethodDecorator {
  return applyDecorators(
    ApiOkResponse({
      description: 'The schedule as it is now.',
      type: ScheduleDto.Output,
      examples: { changed: { summary: 'The schedule', value: { ...WEEKLY_ROUND, status } } },
      headers: ETAG,
    }),
    ForbiddenResponse(path),
    TaskProblemResponse('There is no such schedule.', path, 'schedule-not-found'),
    TooManyChangesResponse(path, status),
  );
}

function TooManyChangesResponse(path: string, status: ScheduleStatus): MethodDecorator {
  // Removal is exempt from the limit of changes per hour.
  if (status === 'Removed') return BoundedChange(path);
  return TaskProblemResponse(
    'Too many changes of the schedule, or by the same caller, are under way, or it has reached its limit of changes per hour. `Retry-After` says when to retry.',
    path,
    'schedule-changed-too-often',
    'too-many-changes-at-once',
  );
}

function CommandResponses(
  command: Exclude<ScheduleCommand, 'update'>,
  status: ScheduleStatus,
): MethodDecorator {
  const path = `${PATH}/commands/${command}`;
  const isEnd = command === 'remove';
  return applyDecorators(
    ChangeResponses(path, status),
    InvalidFieldResponse(`/Schedules/1/commands/${command}`, 'id', 'Invalid GUID'),
    ...(isEnd ? [] : [TaskProblemResponse('It is removed.', path, 'schedule-removed')]),
    HttpCode(200),
  );
}

const IF_MATCH = {
  name: 'If-Match',
  description:
    'Go on only if the schedule has one of these ETags. 503 with the type `urn:platform:problem:outcome-unknown`: this change may have been committed, and another client has changed the schedule since.',
  example: '"1"',
} as const;

@Controller('Schedules')
@ApiTags('Schedules')
@RequirePersona(...MANAGERS)
export class ScheduleCommandsController {
  constructor(private readonly lifecycle: ScheduleLifecycleService) {}

  @Patch(':id')
  @ApiOperation({
    operationId: 'updateSchedule',
    summary: 'Change a schedule',
    description:
      'Absent members are unchanged; null clears a member. Future pending instances follow the new schedule: those at an instant that is still due keep their identifier, the others are cancelled. Overdue ones are unchanged. Thousands of instances are updated in steps: `releasing` is the number still to be cancelled, without those that only get a new name or template. ScheduleUpdatedEvent is published once; a request that changes nothing publishes nothing.',
  })
  @ApiHeader(IF_MATCH)
  @ApiBody({ type: UpdateScheduleDto, examples: UPDATE_EXAMPLES })
  @ChangeResponses(PATH, 'Active')
  @InvalidFieldResponse(PATH, 'schedule', 'must have five fields separated by single spaces')
  @TaskProblemResponse('It is removed.', PATH, 'schedule-removed')
  @TaskProblemResponse('`If-Match` does not hold: nothing was changed.', PATH, 'schedule-changed')
  @TaskProblemResponse(
    'The schedule would exceed a limit.',
    PATH,
    'instant-out-of-range',
    'schedule-ends-before-start',
    'schedule-too-frequent',
    'schedule-limit-reached',
    'instance-limit-reached',
    'schedule-not-evaluable',
    'calendar-unknown',
  )
  async update(
    @Param() { id }: ScheduleParams,
    @Body() request: UpdateScheduleDto,
    @Headers('if-match') ifMatch: string | undefined,
    @CurrentCaller() caller: Caller,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ScheduleDto> {
    return scheduleResponse(
      reply,
      await this.lifecycle.update(id, request, entityTagsOf('If-Match', ifMatch), caller),
    );
  }

  @Post(':id/commands/pause')
  @ApiOperation({
    operationId: 'pauseSchedule',
    summary: 'Pause a schedule',
    description:
      'It stops at once. Future pending instances are cancelled, thousands of them in steps (`releasing`); overdue ones are unchanged. May be repeated.',
  })
  @CommandResponses('pause', 'Paused')
  async pause(
    @Param() { id }: ScheduleParams,
    @CurrentCaller() caller: Caller,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ScheduleDto> {
    return scheduleResponse(reply, await this.lifecycle.command(id, 'pause', caller));
  }

  @Post(':id/commands/resume')
  @ApiOperation({
    operationId: 'resumeSchedule',
    summary: 'Resume a paused schedule',
    description: 'Instances are generated from now on, none for the time of the pause. May be repeated.',
  })
  @CommandResponses('resume', 'Active')
  @TaskProblemResponse(
    'The facility has reached its limit of schedules or instances, or the schedule cannot be evaluated.',
    `${PATH}/commands/resume`,
    'schedule-limit-reached',
    'instance-limit-reached',
    'schedule-not-evaluable',
  )
  async resume(
    @Param() { id }: ScheduleParams,
    @CurrentCaller() caller: Caller,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ScheduleDto> {
    return scheduleResponse(reply, await this.lifecycle.command(id, 'resume', caller));
  }

  @Post(':id/commands/remove')
  @ApiOperation({
    operationId: 'removeSchedule',
    summary: 'Remove a schedule for good',
    description:
      'It stops at once. Future pending instances are cancelled, thousands of them in steps (`releasing`); overdue ones are unchanged. May be repeated. A removed schedule can be read for 90 days by default, and as long as it has instances; after that it is not found.',
  })
  @CommandResponses('remove', 'Removed')
  async remove(
    @Param() { id }: ScheduleParams,
    @CurrentCaller() caller: Caller,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ScheduleDto> {
    return scheduleResponse(reply, await this.lifecycle.command(id, 'remove', caller));
  }
}
