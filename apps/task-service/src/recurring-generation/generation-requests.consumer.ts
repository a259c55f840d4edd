import { Injectable } from '@nestjs/common';
import {
  ScheduleRecurringTaskInstanceGenerationRequest,
  UnscheduleRecurringTaskInstanceGenerationRequest,
} from '@platform/contracts';
import type {
  ScheduleRecurringTaskInstanceGenerationFailed,
  ScheduleRecurringTaskInstanceGenerationSucceeded,
  UnscheduleRecurringTaskInstanceGenerationFailed,
  UnscheduleRecurringTaskInstanceGenerationSucceeded,
} from '@platform/contracts';
import { Answer } from '@platform/messaging';
import type { ConsumeContext, RequestOutcome } from '@platform/messaging';
import { deleteTrigger } from '../scheduler/delete-trigger.query';
import { GenerationRefused, generationSettings } from './generation-settings';
import { QUEUES } from './queues';
import { ScheduleGeneration } from './schedule-generation.handler';

/** Answers requests to configure and to remove recurring generation. */
@Injectable()
export class GenerationRequestsConsumer {
  constructor(private readonly scheduleGeneration: ScheduleGeneration) {}

  @Answer(ScheduleRecurringTaskInstanceGenerationRequest, {
    queue: QUEUES.scheduleRequest,
  })
  schedule(
    request: ScheduleRecurringTaskInstanceGenerationRequest,
    { transaction, conversationId }: ConsumeContext,
  ): Promise<
    RequestOutcome<
      ScheduleRecurringTaskInstanceGenerationSucceeded,
      ScheduleRecurringTaskInstanceGenerationFailed
    >
  > {
    return answered(request.facilityId, () =>
      this.scheduleGeneration.execute(transaction, request, conversationId),
    );
  }

  @Answer(UnscheduleRecurringTaskInstanceGenerationRequest, {
    queue: QUEUES.unscheduleRequest,
  })
  unschedule(
    { facilityId }: UnscheduleRecurringTaskInstanceGenerationRequest,
    { transaction }: ConsumeContext,
  ): Promise<
    RequestOutcome<
      UnscheduleRecurringTaskInstanceGenerationSucceeded,
      UnscheduleRecurringTaskInstanceGenerationFailed
    >
  > {
    return answered(facilityId, async () => {
      generationSettings({ facilityId }, null);
      return { facilityId, removed: await deleteTrigger(transaction, facilityId) };
    });
  }
}

/** A refusal is an answer; any other failure is the consumer's. */
async function answered<S>(
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
