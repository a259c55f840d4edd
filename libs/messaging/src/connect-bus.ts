import { Logger, type LoggerService } from '@nestjs/common';
import type { Bus, MessageContract, RequestContract } from '@platform/contracts';
import { type Clock, SYSTEM_CLOCK } from '@platform/time';
import { BusRuntime, type PublishOptions } from './bus-runtime';
import { type DeliveryContext, type Endpoint, type EndpointHandler, NO_COUNTERS } from './consuming/endpoint';
import { BusUnavailableError } from './errors';
import type { RequestOutcome } from './requesting/bus-requester';

export interface ConnectBusOptions {
  readonly url: string;
  /** Name of this program; seen in envelopes and in the broker's management. */
  readonly name: string;
  /** Which bus this connection is; only used in logs and errors. `main` unless given. */
  readonly bus?: Bus;
  /** Namespace of the message types; `Platform.Contracts` unless given. */
  readonly namespace?: string;
  /** Longest wait for the first connection; 30,000 ms unless given. */
  readonly timeoutMs?: number;
  readonly logger?: LoggerService;
  readonly clock?: Clock;
}

interface PlainConsumeOptions {
  readonly queue: string;
  readonly retryDelaysMs?: readonly number[];
  readonly prefetch?: number;
}

/** A bus for a program without Nest: the same envelopes, queues, retries and recovery, but no inbox, so a handler may see a message
 *  more than once. */
export interface PlainBus {
  publish<T>(contract: MessageContract<T>, message: T, options?: PublishOptions): Promise<void>;
  consume<T>(
    contract: MessageContract<T>,
    options: PlainConsumeOptions,
    handler: (message: T, context: DeliveryContext) => Promise<void>,
  ): Promise<void>;
  answer<T, S, F>(
    contract: RequestContract<T, S, F>,
    options: PlainConsumeOptions,
    handler: (message: T, context: DeliveryContext) => Promise<RequestOutcome<S, F>>,
  ): Promise<void>;
  request<T, S, F>(
    contract: RequestContract<T, S, F>,
    message: T,
    options: { timeoutMs: number },
  ): Promise<RequestOutcome<S, F>>;
  /** Whether the connection stands and every queue is being consumed. */
  isReady(): boolean;
  /** Stops consuming, finishes what is in process, closes. */
  close(): Promise<void>;
}

const POLL_MS = 25;

/** Connects a plain Node program to a bus; from then on the connection recovers by itself.
 *  @throws {BusUnavailableError} if the broker cannot be reached within the timeout */
export async function connectBus(options: ConnectBusOptions): Promise<PlainBus> {
  const clock = options.clock ?? SYSTEM_CLOCK;
  const runtime = new BusRuntime({
    bus: options.bus ?? 'main',
    url: options.url,
    service: options.name,
    namespace: options.namespace ?? 'Platform.Contracts',
    logger: options.logger ?? new Logger(options.name),
    clock,
    counters: NO_COUNTERS,
  });
  await runtime.open();
  const deadlineMs = clock.monotonicMs() + (options.timeoutMs ?? 30_000);
  if (!(await becomes(() => runtime.isUsable, clock, deadlineMs))) {
    await runtime.close();
    throw new BusUnavailableError(options.bus ?? 'main', 'no connection');
  }
  return plainBus(runtime, clock);
}

function plainBus(runtime: BusRuntime, clock: Clock): PlainBus {
  const consume = async (options: PlainConsumeOptions, handler: EndpointHandler): Promise<void> => {
    runtime.consume(endpoint(options, handler));
    const deadlineMs = clock.monotonicMs() + 10_000;
    await becomes(() => !runtime.idleQueues.includes(options.queue), clock, deadlineMs);
  };
  return {
    publish: (contract, message, options) => runtime.publish(contract, message, options),
    request: (contract, message, options) => runtime.request(contract, message, options),
    consume: (contract, options, handler) =>
      consume(options, {
        contract,
        isRequest: false,
        process: async (message, context) => {
          await handler(message as Parameters<typeof handler>[0], context);
          return null;
        },
      }),
    answer: (contract, options, handler) =>
      consume(options, {
        contract,
        isRequest: true,
        process: async (message, context) => {
          const outcome = await handler(message as Parameters<typeof handler>[0], context);
          return 'succeeded' in outcome
            ? { contract: contract.succeeded, message: outcome.succeeded }
            : { contract: contract.failed, message: outcome.failed };
        },
      }),
    isReady: () => runtime.isUsable && runtime.idleQueues.length === 0,
    close: async () => {
      await runtime.drain();
      await runtime.close();
    },
  };
}

function endpoint(
  { queue, retryDelaysMs, prefetch }: PlainConsumeOptions,
  handler: EndpointHandler,
): Endpoint {
  const policy = { immediateRetryDelaysMs: [], retryDelaysMs: retryDelaysMs ?? [] };
  return { queue, handlers: [handler], policy, prefetch: prefetch ?? 10, isOutage: () => false };
}

async function becomes(condition: () => boolean, clock: Clock, deadlineMs: number): Promise<boolean> {
  while (!condition()) {
    if (clock.monotonicMs() > deadlineMs) return false;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return true;
}
