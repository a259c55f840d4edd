import { Injectable, Logger } from '@nestjs/common';
import { BusinessUnitChangeV1 } from '@platform/contracts';
import { Consume } from '@platform/messaging';
import type { ConsumeContext } from '@platform/messaging';
import { MINUTE_MS, SECOND_MS } from '@platform/time';
import { TriggersRepository } from '../scheduler/triggers.repository';
import { BusinessUnitChangesRepository } from './business-unit-changes.repository';
import { QUEUES } from './queues';
import { RecurringGenerationService } from './recurring-generation.service';

/** Waits before the five retries of a business-unit change. Source: task messaging spec, Limits. */
const BUSINESS_UNIT_CHANGE_RETRY_DELAYS_MS = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  MINUTE_MS,
  3 * MINUTE_MS,
  5 * MINUTE_MS,
] as const;

/** Business-unit activation schedules recurring generation for its facilities, deactivation removes it. */
@Injectable()
export class BusinessUnitChangeConsumer {
  private readonly logger = new Logger(BusinessUnitChangeConsumer.name);

  constructor(
    private readonly changes: BusinessUnitChangesRepository,
    private readonly triggers: TriggersRepository,
    private readonly generation: RecurringGenerationService,
  ) {}

  @Consume(BusinessUnitChangeV1, {
    queue: QUEUES.businessUnitChange,
    retryDelaysMs: BUSINESS_UNIT_CHANGE_RETRY_DELAYS_MS,
  })
  async onChange(
    change: BusinessUnitChangeV1,
    { transaction, conversationId }: ConsumeContext,
  ): Promise<void> {
    // An update decides nothing here. Noting it would make an earlier activation that is being retried look stale.
    if (change.changeType === 'Updated') return;
    if (!(await this.changes.record(transaction, change))) {
      this.logger.log(
        `ignored stale change ${change.eventId} of business unit ${String(change.businessUnitId)}`,
      );
      return;
    }
    // Ascending, so that two changes with common facilities lock them in the same order.
    const facilityIds = [...new Set(change.facilityIds)].sort((left, right) => left - right);
    for (const facilityId of facilityIds) {
      if (change.changeType === 'Activated')
        await this.generation.schedule(
          transaction,
          { facilityId, timeZone: change.timeZone },
          conversationId,
        );
      else await this.triggers.delete(transaction, facilityId);
    }
  }
}
