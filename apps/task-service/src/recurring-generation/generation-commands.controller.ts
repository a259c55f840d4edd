import { Body, Controller, HttpCode, Inject, Post } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import {
  ScheduleRecurringTaskInstanceGenerationRequest,
  UnscheduleRecurringTaskInstanceGenerationRequest,
} from '@platform/contracts';
import type { RequestContract } from '@platform/contracts';
import { RequestClient } from '@platform/messaging';
import { Persona } from '@platform/personas';
import { Documented, problems } from '@platform/service-defaults';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { SCHEDULE_GENERATION, UNSCHEDULE_GENERATION } from './generation-command-docs';
import { ScheduleGenerationDto, UnscheduleGenerationDto } from './generation-command.dto';

type Succeeded<S> = { result: 'Succeeded' } & S;

/** Commands that are requests over the bus: the reply, from whichever replica consumed the request, goes back to the caller. */
@Controller('commands')
@RequirePersona(Persona.InternalPartner)
export class GenerationCommandsController {
  constructor(
    private readonly requests: RequestClient,
    @Inject(TASK_CONFIG) private readonly config: TaskServiceConfig,
  ) {}

  @Post('scheduleRecurringTaskInstanceGeneration')
  @Documented(SCHEDULE_GENERATION)
  @HttpCode(200)
  schedule(@Body() command: ScheduleGenerationDto, @CurrentCaller() caller: Caller): Promise<object> {
    return this.request(ScheduleRecurringTaskInstanceGenerationRequest, {
      ...command,
      requestedBy: caller.subject,
    });
  }

  @Post('unscheduleRecurringTaskInstanceGeneration')
  @Documented(UNSCHEDULE_GENERATION)
  @HttpCode(200)
  unschedule(@Body() command: UnscheduleGenerationDto, @CurrentCaller() caller: Caller): Promise<object> {
    return this.request(UnscheduleRecurringTaskInstanceGenerationRequest, {
      ...command,
      requestedBy: caller.subject,
    });
  }

  /** @throws {ProblemException} 422 with the code and reason of a Failed reply */
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
