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

/** Everything this service publishes. The outbox stores their names. */
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

/** An event on its way out. */
export interface OutboundEvent {
  readonly contract: OutboundContract;
  readonly message: unknown;
  /** The ordering key: events of one facility are published in the order they were stored. */
  readonly facilityId: number;
  /** The conversation of the message that caused this event, if one did. */
  readonly conversationId?: string;
}

/** Ties a message to its contract, so that a wrong field does not compile. */
export function outboundEvent<T>(
  contract: OutboundContract & MessageContract<T>,
  message: T,
  facilityId: number,
  cause: { conversationId?: string } = {},
): OutboundEvent {
  return { contract, message, facilityId, ...cause };
}

/** @throws {RangeError} for a message type that this release does not publish */
export function outboundContract(messageType: string): OutboundContract {
  const contract = BY_NAME.get(messageType);
  if (!contract) throw new RangeError(`unknown message type ${messageType}`);
  return contract;
}

/**
 * Message types that go over these buses. A type that only a newer release knows is not among them: its
 * replicas publish it.
 */
export function messageTypesOf(buses: readonly Bus[]): string[] {
  return OUTBOUND_CONTRACTS.filter(({ bus }) => buses.includes(bus)).map(({ name }) => name);
}

/** Partitions of the outbox: what one partition holds is published by one replica at a time. */
export const PARTITION_COUNT = 16;

/**
 * The partition of a facility, 0 to 15: the same on every replica and release, so that a facility's events
 * stay in order.
 */
export function partitionOf(facilityId: number): number {
  return createHash('sha256').update(String(facilityId)).digest().readUInt32BE(0) % PARTITION_COUNT;
}
