import { Injectable, Logger } from '@nestjs/common';
import { BusinessUnitChangeV1 } from '@platform/contracts';
import { Consume, UnacceptableMessageError } from '@platform/messaging';
import type { ConsumeContext } from '@platform/messaging';
import { MINUTE_MS, SECOND_MS } from '@platform/time';
import { TriggersRepository } from '../scheduler/triggers.repository';
import { BusinessUnitFacilitiesRepository } from './business-unit-facilities.repository';
import { QUEUES } from './queues';
import { GenerationTriggersService } from './generation-triggers.service';

/** Waits before the five retries of a business-unit change. Source: task messaging spec, Limits. */
const BUSINESS_UNIT_CHANGE_RETRY_DELAYS_MS = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  MINUTE_MS,
  3 * MINUTE_MS,
  5 * MINUTE_MS,
] as const;

/** Business-unit activation schedules recurring generation for its facilities; deactivation removes it from those that no other unit holds
 *  active. */
@Injectable()
export class BusinessUnitChangeConsumer {
  private readonly logger = new Logger(BusinessUnitChangeConsumer.name);

  constructor(
    private readonly facilities: BusinessUnitFacilitiesRepository,
    private readonly triggers: TriggersRepository,
    private readonly generation: GenerationTriggersService,
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
    const facilityIds = [...new Set(change.facilityIds)];
    if (!(await this.facilities.lock(transaction, change, facilityIds)))
      throw new UnacceptableMessageError('occurredAtUtc: lies too far ahead');
    const applied = await this.facilities.apply(transaction, change, facilityIds);
    if (applied.length < facilityIds.length)
      this.logger.log(staleText(change, facilityIds.length - applied.length));
    if (change.changeType === 'Activated')
      await this.generation.scheduleAll(transaction, applied, { timeZone: change.timeZone }, conversationId);
    else await this.triggers.deleteInactive(transaction, applied);
  }
}

function staleText({ eventId, businessUnitId }: BusinessUnitChangeV1, count: number): string {
  return `change ${eventId} of business unit ${String(businessUnitId)} is stale for ${String(count)} facilities`;
}
