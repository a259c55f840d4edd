import { Injectable } from '@nestjs/common';
import { ScheduleCreatedNotification, TaskInstanceGenerationRequested } from '@platform/contracts';
import { Consume } from '@platform/messaging';
import type { ConsumeContext } from '@platform/messaging';
import { exponentialRetryDelayMs } from '@platform/time';
import { InstanceGenerationService } from './instance-generation.service';
import { QUEUES } from './queues';

/**
 * Delays before the five retries of the generator, 10 ms to 100 s. The last two wait in the broker, so that a
 * failing facility does not hold up the deliveries of others. Source: task messaging spec, Limits. Each retry
 * is a new transaction, so none is open during a delay.
 */
const GENERATOR_RETRIES = {
  immediateRetryDelaysMs: [1, 2, 3].map(exponentialRetryDelayMs),
  retryDelaysMs: [4, 5].map(exponentialRetryDelayMs),
  outlastsOutages: true,
  // Allows reordering: generation creates the same instances in any order.
  takesTurns: true,
} as const;

/**
 * Maximum instances generated when a schedule is created. Generating 500 costs about as much as creating the
 * schedule, so schedules cannot be created faster than their first instances are generated. The rest follows
 * in the facility's turn.
 */
const INSTANCES_AT_ONCE = 500;

/** Generates task instances: for a facility when its trigger fires, for a schedule when it is created. */
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
