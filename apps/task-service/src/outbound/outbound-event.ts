import { createHash } from 'node:crypto';
import {
  ScheduleCreatedEvent,
  SchedulePausedEvent,
  ScheduleRemovedEvent,
  ScheduleResumedEvent,
  ScheduleUpdatedEvent,
  ScheduledMessageEvent,
  TaskInstanceCancelledEvent,
  TaskInstanceCompletedEvent,
  TaskInstanceGenerationRequested,
} from '@platform/contracts';
import type { Bus, MessageContract } from '@platform/contracts';

/** Contracts of all messages that this service publishes. The outbox stores their names. */
const OUTBOUND_CONTRACTS = [
  ScheduleCreatedEvent,
  ScheduleUpdatedEvent,
  SchedulePausedEvent,
  ScheduleResumedEvent,
  ScheduleRemovedEvent,
  ScheduledMessageEvent,
  TaskInstanceCompletedEvent,
  TaskInstanceCancelledEvent,
  TaskInstanceGenerationRequested,
] as const;

type OutboundContract = (typeof OUTBOUND_CONTRACTS)[number];

const BY_NAME: ReadonlyMap<string, OutboundContract> = new Map(
  OUTBOUND_CONTRACTS.map((contract) => [contract.name, contract]),
);

/** An event to publish. */
export interface OutboundEvent {
  readonly contract: OutboundContract;
  readonly message: unknown;
  /**
   * Ordering key: events of one facility and message type are published in the order in which they were
   * stored.
   */
  readonly facilityId: number;
  /** Conversation of the message that caused this event; absent if none did. */
  readonly conversationId?: string;
}

/**
 * Creates an event. The type parameter ties the message to its contract, so that a wrong field does not
 * compile.
 */
export function outboundEvent<T>(
  contract: OutboundContract & MessageContract<T>,
  message: T,
  facilityId: number,
  cause: { conversationId?: string } = {},
): OutboundEvent {
  return { contract, message, facilityId, ...cause };
}

/**
 * Returns the contract of a message type.
 * @throws {RangeError} for a message type that this release does not publish
 */
export function outboundContract(messageType: string): OutboundContract {
  const contract = BY_NAME.get(messageType);
  if (!contract) throw new RangeError(`unknown message type ${messageType}`);
  return contract;
}

/**
 * Returns the message types that go over these buses. Types that only a newer release knows are missing: the
 * replicas of that release publish them.
 */
export function messageTypesOf(buses: readonly Bus[]): string[] {
  return OUTBOUND_CONTRACTS.filter(({ bus }) => buses.includes(bus)).map(({ name }) => name);
}

/** Number of partitions of the outbox. One replica at a time publishes a partition. */
export const PARTITION_COUNT = 16;

/**
 * Returns the partition of a facility, 0 to 15. It is the same on every replica and release, so that a
 * facility's events stay in order.
 */
export function partitionOf(facilityId: number): number {
  return createHash('sha256').update(String(facilityId)).digest().readUInt32BE(0) % PARTITION_COUNT;
}
