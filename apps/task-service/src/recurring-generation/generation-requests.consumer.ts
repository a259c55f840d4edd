import { Injectable } from '@nestjs/common';
import {
  ScheduleRecurringTaskInstanceGenerationRequest,
  UnscheduleRecurringTaskInstanceGenerationRequest,
} from '@platform/contracts';
import { Respond } from '@platform/messaging';
import type { ConsumeContext, RequestOutcome } from '@platform/messaging';
import { FacilityActivityRepository } from '../scheduler/facility-activity.repository';
import { TriggersRepository } from '../scheduler/triggers.repository';
import { GenerationRefused, generationSettings } from './generation-settings';
import { QUEUES } from './queues';
import { GenerationTriggersService } from './generation-triggers.service';

/** Replies to requests that configure or remove recurring generation. */
@Injectable()
export class GenerationRequestsConsumer {
  constructor(
    private readonly generation: GenerationTriggersService,
    private readonly triggers: TriggersRepository,
    private readonly activity: FacilityActivityRepository,
  ) {}

  @Respond(ScheduleRecurringTaskInstanceGenerationRequest, { queue: QUEUES.scheduleRequest })
  schedule(
    request: ScheduleRecurringTaskInstanceGenerationRequest,
    { transaction, conversationId }: ConsumeContext,
  ) {
    return replyTo(request.facilityId, () => this.generation.schedule(transaction, request, conversationId));
  }

  @Respond(UnscheduleRecurringTaskInstanceGenerationRequest, { queue: QUEUES.unscheduleRequest })
  unschedule(
    { facilityId }: UnscheduleRecurringTaskInstanceGenerationRequest,
    { transaction }: ConsumeContext,
  ) {
    return replyTo(facilityId, async () => {
      generationSettings({ facilityId }, null);
      const removed = await this.triggers.delete(transaction, facilityId);
      await this.activity.clearStoredTrigger(transaction, facilityId);
      return { facilityId, removed };
    });
  }
}

/** Turns a GenerationRefused into a Failed reply. Any other error makes the consumer fail. */
async function replyTo<S>(
  facilityId: number,
  work: () => Promise<S>,
): Promise<RequestOutcome<S, { facilityId: number; code: string; reason: string }>> {
  try {
    return { succeeded: await work() };
  } catch (error) {
    if (error instanceof GenerationRefused)
      return { failed: { facilityId, code: error.code, reason: error.reason } };
    throw error;
  }
}
