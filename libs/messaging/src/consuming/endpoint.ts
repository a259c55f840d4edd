import type { MessageContract } from '@platform/contracts';
import type { ReceivedEnvelope } from '../envelope/read-envelope';

/** What a handler learns about the delivery besides the message itself. */
export interface DeliveryContext {
  /** Identity of the message; made up for a raw message that has none. */
  readonly messageId: string;
  readonly correlationId: string | null;
  /** Pass it on to every message that this one causes. */
  readonly conversationId: string;
  /** When the sender sent it; null when it does not say. */
  readonly sentAt: Date | null;
  /** Whether the broker has handed it out before; handlers need not care, the inbox does. */
  readonly redelivered: boolean;
  readonly envelope: ReceivedEnvelope;
}

/** What is tried again, when, and how often. */
export interface RetryPolicy {
  /** Waits inside the process, in milliseconds, while the delivery is held. */
  readonly immediateRetryDelaysMs: readonly number[];
  /** Waits in the broker, in milliseconds, one queue per delay; each is used once, in this order. */
  readonly retryDelaysMs: readonly number[];
}

/** An answer in the envelope's terms: which of the two contracts, and the message. */
export interface Answer {
  readonly contract: MessageContract<unknown>;
  readonly message: unknown;
}

/** One message type at a queue. `process` carries the message out, once in effect, and gives the answer if there is one to give. */
export interface EndpointHandler {
  readonly contract: MessageContract<unknown>;
  readonly isRequest: boolean;
  readonly process: (message: unknown, context: DeliveryContext) => Promise<Answer | null>;
}

/** A queue and what is done with its messages. */
export interface Endpoint {
  readonly queue: string;
  readonly handlers: readonly EndpointHandler[];
  readonly policy: RetryPolicy;
  readonly prefetch: number;
  /** Whether an error says that something everyone needs is away (the database), rather than that this message is bad. */
  readonly isOutage: (error: unknown) => boolean;
}

/** What the delivery pipeline counts; each method is one metric. */
export interface MessagingCounters {
  published(bus: string, message: string): void;
  returned(bus: string, message: string): void;
  consumed(queue: string, message: string): void;
  retried(queue: string, message: string): void;
  errored(queue: string, reason: string): void;
}

/** Counts nothing. */
export const NO_COUNTERS: MessagingCounters = {
  published: () => undefined,
  returned: () => undefined,
  consumed: () => undefined,
  retried: () => undefined,
  errored: () => undefined,
};
