import { Inject, Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { Bus, MessageContract, RequestContract } from '@platform/contracts';
import { CLOCK, HealthRegistry, ShutdownRegistry } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import type { RequestOptions, RequestOutcome } from '../broker/bus-requester';
import { BusRuntime, type PublishEnvelopeOptions, type PublishOptions } from '../bus-runtime';
import type { SerializedEnvelope } from '../envelope/create-envelope';
import { MessageMetrics } from '../metrics/message-metrics';

/** A service's settings for the two buses. */
export interface MessagingOptions {
  /**
   * Name of the service, used in envelopes, in reply queue names and as the connections' name at the brokers.
   */
  readonly service: string;
  /** Version of the service, written into envelopes. */
  readonly version: string;
  /** Namespace of the message types, e.g. `Platform.Contracts`. */
  readonly namespace: string;
  /** AMQP URL of the main bus; holds a password and is never logged. */
  readonly main: { readonly url: string };
  /** AMQP URL of the scheduling bus, with the same rules; may be the same broker. */
  readonly scheduling: { readonly url: string };
  /** Milliseconds between purges of old inbox rows; one hour unless given. */
  readonly inboxPurgeIntervalMs?: number;
}

/** Injection token of {@link MessagingOptions}. */
export const MESSAGING_OPTIONS = Symbol('MESSAGING_OPTIONS');

/**
 * The service's two buses. They open when the module starts and count towards readiness. They drain before
 * HTTP closes, and close after it, because requests in flight may still publish.
 */
@Injectable()
export class Buses implements OnModuleInit, OnApplicationShutdown {
  private readonly runtimes: Readonly<Record<Bus, BusRuntime>>;
  private drained: Promise<void> | null = null;

  constructor(
    @Inject(MESSAGING_OPTIONS) options: MessagingOptions,
    @Inject(CLOCK) clock: Clock,
    metrics: MessageMetrics,
    private readonly health: HealthRegistry,
    private readonly shutdown: ShutdownRegistry,
  ) {
    const { service, version, namespace } = options;
    const logger = new Logger('messaging');
    const runtime = (bus: Bus): BusRuntime =>
      new BusRuntime(
        { bus, url: options[bus].url, service, version, namespace, logger, clock },
        metrics.count,
      );
    this.runtimes = { main: runtime('main'), scheduling: runtime('scheduling') };
  }

  async onModuleInit(): Promise<void> {
    for (const [bus, runtime] of Object.entries(this.runtimes)) {
      this.health.addReadinessCheck({ name: `bus-${bus}`, check: () => requireReady(runtime) });
      await runtime.open();
    }
    this.shutdown.addDrainHook({ name: 'message consumers', drain: () => this.drain() });
  }

  get(bus: Bus): BusRuntime {
    return this.runtimes[bus];
  }

  /** Stops consuming and waits for the deliveries in process. Publishing still works. */
  drain(): Promise<void> {
    const { main, scheduling } = this.runtimes;
    this.drained ??= Promise.all([main.drain(), scheduling.drain()]).then(() => undefined);
    return this.drained;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.drain();
    await Promise.all([this.runtimes.main.close(), this.runtimes.scheduling.close()]);
  }
}

function requireReady(runtime: BusRuntime): Promise<void> {
  if (!runtime.isUsable) return Promise.reject(new Error('not connected'));
  const [idle] = runtime.idleQueues;
  if (idle === undefined) return Promise.resolve();
  return Promise.reject(new Error(`queue ${idle} is not consumed`));
}

/**
 * Publishes to the contract's bus. Resolves only when the broker has confirmed the message, so a caller that
 * must not lose it stores it first (outbox) and deletes it afterwards.
 */
@Injectable()
export class MessagePublisher {
  constructor(private readonly buses: Buses) {}

  /**
   * @throws {BusUnavailableError} at once if the broker is unavailable
   * @throws {PublishTimeoutError} if the broker stays silent
   * @throws {MessageReturnedError} if the contract needs a receiver and the message is routed to no queue; it
   * was not delivered
   * @throws {MessageRefusedError} if a queue that should accept it refuses it; other queues may have accepted
   * it
   * @throws {InvalidMessageError | MessageTooLargeError} if the message does not satisfy its contract
   */
  async publish<T>(contract: MessageContract<T>, message: T, options: PublishOptions = {}): Promise<void> {
    const bus = this.buses.get(contract.bus);
    await bus.publish(bus.createEnvelope(contract, message, options), { timeoutMs: options.timeoutMs });
  }

  /**
   * Creates the envelope of a message that this process sends now or later.
   * @throws {InvalidMessageError | MessageTooLargeError} as {@link publish}
   */
  createEnvelope<T>(contract: MessageContract<T>, message: T, options: PublishOptions): SerializedEnvelope {
    return this.buses.get(contract.bus).createEnvelope(contract, message, options);
  }

  /**
   * Publishes an envelope from {@link createEnvelope}.
   * @throws as {@link publish}
   */
  publishEnvelope(envelope: SerializedEnvelope, options: PublishEnvelopeOptions = {}): Promise<void> {
    return this.buses.get(envelope.bus).publish(envelope, options);
  }

  /**
   * Whether the broker responds, with a confirm or a refusal, to a message that is routed to no queue.
   * Distinguishes an unavailable bus from one unavailable queue.
   */
  isResponding(bus: Bus, timeoutMs: number): Promise<boolean> {
    return this.buses.get(bus).isResponding(timeoutMs);
  }
}

/** Sends requests over the contract's bus and waits for their responses. */
@Injectable()
export class RequestClient {
  constructor(private readonly buses: Buses) {}

  /**
   * @throws {RequestTimeoutError} if no response arrives in time; the receiver may still carry out the
   * request
   * @throws {RequestFaultedError} if the receiver failed, or its response cannot be read or breaks the
   * contract
   * @throws {MessageReturnedError} if no queue receives these requests
   * @throws {BusUnavailableError | PublishTimeoutError} if the request could not be sent
   */
  request<T, S, F>(
    contract: RequestContract<T, S, F>,
    message: T,
    options: RequestOptions,
  ): Promise<RequestOutcome<S, F>> {
    return this.buses.get(contract.bus).requester.request(contract, message, options);
  }
}
