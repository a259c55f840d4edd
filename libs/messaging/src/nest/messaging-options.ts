/** How a service takes part in the two buses. */
export interface MessagingOptions {
  /** Name of the service; seen in envelopes, reply queues and the broker's management. */
  readonly service: string;
  /** Namespace of the message types, e.g. `Platform.Contracts`. */
  readonly namespace: string;
  readonly main: BusOptions;
  /** May be the same broker. */
  readonly scheduling: BusOptions;
}

interface BusOptions {
  /** AMQP URL; holds a password and is never logged. */
  readonly url: string;
  /** Deliveries in process at one time, per queue; 10 unless given. */
  readonly prefetch?: number;
}

/** Injection token of {@link MessagingOptions}. */
export const MESSAGING_OPTIONS = Symbol('MESSAGING_OPTIONS');
