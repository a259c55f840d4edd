import { Injectable } from '@nestjs/common';
import { ScheduleCreatedNotification, TaskInstanceGenerationRequested } from '@platform/contracts';
import { Consume } from '@platform/messaging';
import type { ConsumeContext } from '@platform/messaging';
import { exponentialRetryDelayMs } from '@platform/time';
import { InstanceGenerationService } from './instance-generation.service';
import { QUEUES } from './queues';

/** Waits before the five retries of the generator: 10 ms to 100 s. Source: task messaging spec, Limits. Each retry is a new
 *  transaction, so none is held open meanwhile. */
const GENERATOR_RETRY_DELAYS_MS = [1, 2, 3, 4, 5].map(exponentialRetryDelayMs);

/** Generates task instances: for a facility when its trigger fires, for a schedule when it was created. */
@Injectable()
export class GenerationConsumer {
  constructor(private readonly generation: InstanceGenerationService) {}

  @Consume(TaskInstanceGenerationRequested, {
    queue: QUEUES.generation,
    immediateRetryDelaysMs: GENERATOR_RETRY_DELAYS_MS,
  })
  async onGenerationRequested(
    { facilityId }: TaskInstanceGenerationRequested,
    { transaction }: ConsumeContext,
  ): Promise<void> {
    await this.generation.generate(transaction, { facilityId });
  }

  @Consume(ScheduleCreatedNotification, {
    queue: QUEUES.scheduleCreated,
    immediateRetryDelaysMs: GENERATOR_RETRY_DELAYS_MS,
  })
  async onScheduleCreated(
    { facilityId, scheduleId }: ScheduleCreatedNotification,
    { transaction }: ConsumeContext,
  ): Promise<void> {
    await this.generation.generate(transaction, { facilityId, scheduleId });
  }
}
