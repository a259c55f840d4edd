import { applyDecorators, Body, Controller, HttpCode, Inject, Post } from '@nestjs/common';
import { type Caller, CurrentCaller, RequirePersona } from '@platform/access-tokens';
import {
  type RequestContract,
  ScheduleRecurringTaskInstanceGenerationRequest,
  UnscheduleRecurringTaskInstanceGenerationRequest,
} from '@platform/contracts';
import { RequestClient } from '@platform/messaging';
import {
  ApiBody,
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  ApiResponse,
  ApiTags,
  problemContent,
  ProblemResponse,
  RESPONSE_HEADERS,
} from '@platform/open-api';
import { Persona } from '@platform/personas';
import { CLOCK, problems } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { TASK_CONFIG, type TaskServiceConfig } from '../config';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { BUS_DOWN, FAULTED, InvalidFieldResponse, NO_REPLY } from '../problems/task-problem.filter';
import { generationRequested } from '../scheduler/due-fire';
import { ChangeSlots } from '../slots/change-slots.service';
import { BoundedChange } from '../slots/bounded-change.decorator';
import {
  GenerateInstancesDto,
  GenerationRefusedDto,
  GenerationScheduledDto,
  GenerationUnscheduledDto,
  SCHEDULE_EXAMPLES,
  SCHEDULED,
  ScheduleGenerationDto,
  UnscheduleGenerationDto,
} from './generation-command.dto';

type Succeeded<S> = { result: 'Succeeded' } & S;

/** Documents the error responses of a command that goes over the bus. */
function BusResponses(instance: string): MethodDecorator {
  const reason = 'The time zone is not an IANA time zone.';
  const extensions = { result: 'Failed', facilityId: 501, code: 'InvalidTimeZone', reason };
  const failed = { summary: 'Refused', detail: reason, extensions, instance };
  return applyDecorators(
    InvalidFieldResponse(instance, 'facilityId', 'must be a number'),
    ApiExtraModels(GenerationRefusedDto.Output),
    ApiResponse({
      status: 422,
      description: 'The consumer replied with Failed.',
      content: problemContent(422, { failed }, 'GenerationRefused'),
    }),
    ProblemResponse(502, 'The consumer failed while it worked on the request.', {
      faulted: { summary: 'A fault', detail: FAULTED, instance },
    }),
    ProblemResponse(
      503,
      'The message broker cannot be reached, or tokens cannot be verified. Nothing was sent.',
      { broker: { summary: 'The broker cannot be reached', detail: BUS_DOWN, instance } },
      RESPONSE_HEADERS.retryAfter,
    ),
    ProblemResponse(504, 'No reply came in time (default: 30 s); the command may still be carried out.', {
      late: { summary: 'No reply', detail: NO_REPLY, instance },
    }),
  );
}

/**
 * Commands that are sent as requests over the bus. The reply of the replica that consumes the request is
 * returned to the caller.
 */
@Controller('commands')
@ApiTags('Recurring generation')
@RequirePersona(Persona.InternalPartner)
export class GenerationCommandsController {
  constructor(
    private readonly requests: RequestClient,
    private readonly outbound: OutboundProxy,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(TASK_CONFIG) private readonly config: TaskServiceConfig,
    private readonly slots: ChangeSlots,
  ) {}

  @Post('scheduleRecurringTaskInstanceGeneration')
  @ApiOperation({
    operationId: 'scheduleRecurringTaskInstanceGeneration',
    summary: 'Generate instances of a facility regularly',
    description: 'Creates or replaces the trigger of the facility. May be repeated.',
  })
  @ApiBody({ type: ScheduleGenerationDto, examples: SCHEDULE_EXAMPLES })
  @ApiOkResponse({
    description: 'The facility has its trigger.',
    type: GenerationScheduledDto.Output,
    examples: { scheduled: { summary: 'Scheduled', value: SCHEDULED } },
  })
  @BusResponses('/commands/scheduleRecurringTaskInstanceGeneration')
  @HttpCode(200)
  schedule(@Body() command: ScheduleGenerationDto, @CurrentCaller() caller: Caller): Promise<object> {
    return this.request(ScheduleRecurringTaskInstanceGenerationRequest, {
      ...command,
      requestedBy: caller.subject,
    });
  }

  @Post('unscheduleRecurringTaskInstanceGeneration')
  @ApiOperation({
    operationId: 'unscheduleRecurringTaskInstanceGeneration',
    summary: 'End the regular generation of a facility',
    description: 'Removes the trigger of the facility; instances that exist stay. May be repeated.',
  })
  @ApiBody({
    type: UnscheduleGenerationDto,
    examples: { one: { summary: 'One facility', value: { facilityId: 501 } } },
  })
  @ApiOkResponse({
    description: 'The facility has no trigger any more.',
    type: GenerationUnscheduledDto.Output,
    examples: {
      removed: { summary: 'Removed', value: { result: 'Succeeded', facilityId: 501, removed: true } },
    },
  })
  @BusResponses('/commands/unscheduleRecurringTaskInstanceGeneration')
  @HttpCode(200)
  unschedule(@Body() command: UnscheduleGenerationDto, @CurrentCaller() caller: Caller): Promise<object> {
    return this.request(UnscheduleRecurringTaskInstanceGenerationRequest, {
      ...command,
      requestedBy: caller.subject,
    });
  }

  @Post('generateTaskInstances')
  @ApiOperation({
    operationId: 'generateTaskInstances',
    summary: 'Generate instances of a facility now',
    description:
      'Works as if its trigger fired, but needs no trigger. Existing instances are not generated again.',
  })
  @ApiBody({
    type: GenerateInstancesDto,
    examples: { one: { summary: 'One facility', value: { facilityId: 501 } } },
  })
  @ApiResponse({ status: 202, description: 'Stored; the instances are generated within seconds.' })
  @InvalidFieldResponse('/commands/generateTaskInstances', 'facilityId', 'must be a number')
  @BoundedChange('/commands/generateTaskInstances')
  @HttpCode(202)
  async generate(
    @Body() { facilityId }: GenerateInstancesDto,
    @CurrentCaller() caller: Caller,
  ): Promise<void> {
    await this.slots.run(`generation ${String(facilityId)}`, caller, () => {
      const event = generationRequested(facilityId, { requestedAt: this.clock.now() });
      return this.outbound.transaction((manager) => this.outbound.store(manager, [event]));
    });
  }

  /**
   * Sends a request over the bus and returns its reply.
   * @throws {ProblemException} 422 with the code and reason of a Failed reply
   */
  private async request<T, S extends object, F extends { code: string; reason: string }>(
    contract: RequestContract<T, S, F>,
    message: T,
  ): Promise<Succeeded<S>> {
    const outcome = await this.requests.request(contract, message, {
      timeoutMs: this.config.REQUEST_TIMEOUT_MS,
    });
    if ('succeeded' in outcome) return { result: 'Succeeded', ...outcome.succeeded };
    throw problems.unprocessable(outcome.failed.reason, { result: 'Failed', ...outcome.failed });
  }
}
