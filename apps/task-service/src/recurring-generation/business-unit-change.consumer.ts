import { Injectable, Logger } from '@nestjs/common';
import { BusinessUnitChangeV1 } from '@platform/contracts';
import { Consume, UnacceptableMessageError } from '@platform/messaging';
import type { ConsumeContext } from '@platform/messaging';
import { MINUTE_MS, SECOND_MS } from '@platform/time';
import type { EntityManager } from 'typeorm';
import { FacilityActivityRepository } from '../scheduler/facility-activity.repository';
import { BusinessUnitFacilitiesRepository, type NotedUnit } from './business-unit-facilities.repository';
import { QUEUES } from './queues';
import { GenerationTriggersService } from './generation-triggers.service';

/** Delays before the five retries of a business-unit change. Source: task messaging spec, Limits. */
const BUSINESS_UNIT_CHANGE_RETRY_DELAYS_MS = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  MINUTE_MS,
  3 * MINUTE_MS,
  5 * MINUTE_MS,
] as const;

/** Facilities per statement on triggers. A unit may hold more facilities than one message lists. */
const FACILITIES_PER_STATEMENT = 5_000;

/**
 * Applies changes of business units, which hold facilities active. A facility has recurring generation as
 * long as at least one unit holds it.
 *
 * `Activated` adds facilities, `Updated` lists all facilities of an active unit, `Deactivated` ends all of
 * the unit's. Delayed retries arrive out of order: a change is ignored if a younger one is known, for the
 * unit-facility pair or for the unit as a whole.
 */
@Injectable()
export class BusinessUnitChangeConsumer {
  private readonly logger = new Logger(BusinessUnitChangeConsumer.name);

  constructor(
    private readonly facilities: BusinessUnitFacilitiesRepository,
    private readonly activity: FacilityActivityRepository,
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
    const facilityIds = [...new Set(change.facilityIds)];
    const unit = await this.facilities.noteChange(transaction, change, facilityIds);
    if (unit.isAhead) throw new UnacceptableMessageError('occurredAtUtc: lies too far ahead');
    if (unit.isDeactivatedLater || (change.changeType === 'Updated' && unit.youngerList !== null)) {
      this.logger.log(staleText(change, facilityIds.length));
      return;
    }
    if (change.changeType === 'Activated')
      await this.activate(transaction, change, facilityIds, unit, conversationId);
    else if (change.changeType === 'Updated' && unit.isListed)
      await this.replace(transaction, change, facilityIds, unit, conversationId);
    else if (change.changeType === 'Deactivated' && !unit.isListed)
      await this.deactivate(transaction, change, facilityIds);
  }

  /**
   * Activates the facilities of the change. If a younger list is known, activates the facilities on that list
   * instead.
   */
  private async activate(
    transaction: EntityManager,
    change: BusinessUnitChangeV1,
    facilityIds: readonly number[],
    { youngerList, listedAt }: NotedUnit,
    conversationId: string | null,
  ): Promise<void> {
    if (youngerList !== null) {
      await this.facilities.lock(transaction, youngerList);
      await this.addListed(transaction, change, { facilityIds: youngerList, listedAt }, conversationId);
      return;
    }
    await this.facilities.lock(transaction, facilityIds);
    const applied = await this.facilities.activate(transaction, change, { facilityIds, listedAt: null });
    const stale = facilityIds.length - applied.length;
    if (stale > 0) this.logger.log(staleText(change, stale));
    const applicable = applied.map(({ facilityId }) => facilityId);
    await this.schedule(transaction, change, applicable, conversationId);
  }

  /** Replaces the unit's facilities with those on the list and those activated later. */
  private async replace(
    transaction: EntityManager,
    change: BusinessUnitChangeV1,
    facilityIds: readonly number[],
    { listedAt }: NotedUnit,
    conversationId: string | null,
  ): Promise<void> {
    // Locks all facilities in one statement: two statements could acquire the locks in another order than
    // another transaction, and deadlock.
    await this.facilities.lockWithActive(transaction, change, facilityIds);
    await this.retire(transaction, await this.facilities.endUnlisted(transaction, change, facilityIds));
    await this.addListed(transaction, change, { facilityIds, listedAt }, conversationId);
  }

  /** Activates the listed facilities. Those that the unit held before keep their triggers unchanged. */
  private async addListed(
    transaction: EntityManager,
    change: BusinessUnitChangeV1,
    list: { facilityIds: readonly number[]; listedAt: string | null },
    conversationId: string | null,
  ): Promise<void> {
    const applied = await this.facilities.activate(transaction, change, list);
    const added = applied.filter(({ isNew }) => isNew).map(({ facilityId }) => facilityId);
    await this.schedule(transaction, change, added, conversationId);
  }

  private async deactivate(
    transaction: EntityManager,
    change: BusinessUnitChangeV1,
    facilityIds: readonly number[],
  ): Promise<void> {
    await this.facilities.lockWithActive(transaction, change, facilityIds);
    await this.retire(transaction, await this.facilities.deactivate(transaction, change, facilityIds));
  }

  private async retire(transaction: EntityManager, facilityIds: readonly number[]): Promise<void> {
    for (const chunk of inChunks(facilityIds)) await this.activity.retireInactive(transaction, chunk);
  }

  private async schedule(
    transaction: EntityManager,
    { timeZone }: BusinessUnitChangeV1,
    facilityIds: readonly number[],
    conversationId: string | null,
  ): Promise<void> {
    for (const chunk of inChunks(facilityIds))
      await this.generation.scheduleAll(transaction, chunk, { timeZone }, conversationId);
  }
}

function staleText({ eventId, businessUnitId }: BusinessUnitChangeV1, count: number): string {
  return `change ${eventId} of business unit ${String(businessUnitId)} is stale for ${String(count)} facilities`;
}

function* inChunks(facilityIds: readonly number[]): Generator<readonly number[]> {
  for (let start = 0; start < facilityIds.length; start += FACILITIES_PER_STATEMENT)
    yield facilityIds.slice(start, start + FACILITIES_PER_STATEMENT);
}
