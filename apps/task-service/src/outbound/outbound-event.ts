import type { MessageContract } from '@platform/contracts';

/** An event on its way out. The facility orders it: events of one facility are published in the order they were stored. */
export interface OutboundEvent<T = unknown> {
  readonly contract: MessageContract<T>;
  readonly message: T;
  readonly facilityId: number;
  /** Identity for the receivers' inboxes; a random UUID unless given. */
  readonly messageId?: string;
  /** The conversation of the message that caused this event, if one did. */
  readonly conversationId?: string;
}

/** Ties a message to its contract, so that a wrong field does not compile. */
export function outboundEvent<T>(
  contract: MessageContract<T>,
  message: T,
  facilityId: number,
  cause: { messageId?: string; conversationId?: string } = {},
): OutboundEvent {
  return { contract, message, facilityId, ...cause };
}
