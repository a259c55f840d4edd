import { Injectable } from '@nestjs/common';
import { ScheduleCreatedNotification, TaskInstanceGenerationRequested } from '@platform/contracts';
import { Consume } from '@platform/messaging';
import type { ConsumeContext } from '@platform/messaging';
import { exponentialRetryDelayMs } from '@platform/time';
import { InstanceGenerationService } from './instance-generation.service';
import { QUEUES } from './queues';

/**
 * Waits before the five retries of the generator, 10 ms to 100 s; the last two in the broker, so that a
 * facility that fails holds no delivery of others. Source: task messaging spec, Limits. Each retry is a new
 * transaction, so none is held open meanwhile.
 */
const GENERATOR_RETRIES = {
  immediateRetryDelaysMs: [1, 2, 3].map(exponentialRetryDelayMs),
  retryDelaysMs: [4, 5].map(exponentialRetryDelayMs),
  outlastsOutages: true,
  // Whatever the order, the same instances are there in the end.
  takesTurns: true,
} as const;

/** Making 500 instances costs about what creating the schedule cost. So nobody creates schedules faster
 *  than their first instances are made. The rest follows in the facility's turn. */
const INSTANCES_AT_ONCE = 500;

/** Generates task instances: for a facility when its trigger fires, for a schedule when it was created. */
@Injectable()
export class GenerationConsumer {
  constructor(private readonly generation: InstanceGenerationService) {}

  @Consume(TaskInstanceGenerationRequested, {
    queue: QUEUES.generation,
    ...GENERATOR_RETRIES,
  })
  async onGenerationRequested(
    { facilityId }: TaskInstanceGenerationRequested,
    { transaction }: ConsumeContext,
  ): Promise<void> {
    await this.generation.generate(transaction, { facilityId });
  }

  @Consume(ScheduleCreatedNotification, {
    queue: QUEUES.scheduleCreated,
    ...GENERATOR_RETRIES,
  })
  async onScheduleCreated(
    { facilityId, scheduleId }: ScheduleCreatedNotification,
    { transaction }: ConsumeContext,
  ): Promise<void> {
    await this.generation.generate(transaction, { facilityId, scheduleId }, INSTANCES_AT_ONCE);
  }
}
