import 'reflect-metadata';
import type { Bus, MessageContract, RequestContract } from '@platform/contracts';
import type { Isolation } from '@platform/database';
import type { EntityManager } from 'typeorm';
import type { RequestOutcome } from '../broker/bus-requester';
import { type DeliveryContext, MAX_IMMEDIATE_DELAY_MS, type QueueOptions } from '../consuming/endpoint';

/** Data of a delivery that a consumer's handler receives with the message. */
export interface ConsumeContext extends DeliveryContext {
  /**
   * The transaction that also writes the inbox row. What the handler writes through it takes effect once per
   * message.
   */
  readonly transaction: EntityManager;
}

/** Options of a handler. Several handlers may share one queue if they agree on its options. */
export interface ConsumeOptions extends QueueOptions {
  /** Isolation of the transaction; READ COMMITTED unless given. */
  readonly isolation?: Isolation;
  /**
   * Whether messages of a facility that has just held a connection for long are postponed in favour of other
   * facilities. Only for messages whose order does not matter.
   */
  readonly yieldsToOtherKeys?: boolean;
}

/** The data that a decorator records about a method. */
interface HandlerMetadata {
  readonly contract: MessageContract<unknown>;
  /** The same contract if it is a request, else null. */
  readonly request: RequestContract<unknown, unknown, unknown> | null;
  readonly options: ConsumeOptions;
}

const HANDLERS = Symbol('MESSAGE_HANDLERS');

type MethodDecoratorFor<H> = <M extends H>(
  target: object,
  key: string | symbol,
  method: TypedPropertyDescriptor<M>,
) => void;

/**
 * Marks a provider's method as the handler of a message. One transaction covers the inbox row, the handler
 * and all that it writes through `context.transaction`. The message is acknowledged after the commit. A
 * repetition is acknowledged without running the handler.
 */
export function Consume<T>(
  contract: MessageContract<T>,
  options: ConsumeOptions,
): MethodDecoratorFor<(message: T, context: ConsumeContext) => Promise<void>> {
  return (_target, _key, method) => record(method.value, { contract, request: null, options });
}

/**
 * Marks a provider's method as the handler of a request; otherwise like {@link Consume}. The response is
 * stored with the inbox row and sent after the commit. A repeated request is not carried out again but
 * receives the stored response.
 */
export function Respond<T, S, F>(
  contract: RequestContract<T, S, F>,
  options: ConsumeOptions,
): MethodDecoratorFor<(message: T, context: ConsumeContext) => Promise<RequestOutcome<S, F>>> {
  return (_target, _key, method) => record(method.value, { contract, request: contract, options });
}

/** Returns what the decorators recorded on a method; empty for an ordinary method. */
export function handlersOf(method: object): readonly HandlerMetadata[] {
  return (Reflect.getMetadata(HANDLERS, method) as HandlerMetadata[] | undefined) ?? [];
}

function record(method: object | undefined, metadata: HandlerMetadata): void {
  if (method === undefined) throw new Error('only methods handle messages');
  Reflect.defineMetadata(HANDLERS, [...handlersOf(method), metadata], method);
}

/** A marked method, bound to its provider. */
export interface DiscoveredHandler extends HandlerMetadata {
  readonly invoke: (message: unknown, context: ConsumeContext) => Promise<unknown>;
}

/** A queue with all of its handlers. */
export interface EndpointPlan {
  readonly bus: Bus;
  readonly options: QueueOptions;
  readonly handlers: readonly DiscoveredHandler[];
}

/**
 * Groups handlers by queue.
 * @throws {Error} if two handlers of one queue have the same message, or disagree about the queue's bus or
 * options
 */
export function planEndpoints(handlers: readonly DiscoveredHandler[]): EndpointPlan[] {
  const plans = new Map<string, EndpointPlan>();
  for (const handler of handlers) {
    const { contract, options } = handler;
    const plan = plans.get(options.queue) ?? { bus: contract.bus, options, handlers: [] };
    if (plan.handlers.some((other) => other.contract.name === contract.name))
      throw new Error(`queue ${options.queue}: one message has two handlers`);
    if (settingsOf(plan.bus, plan.options) !== settingsOf(contract.bus, options))
      throw new Error(`queue ${options.queue}: its handlers disagree about its options`);
    plans.set(options.queue, { ...plan, handlers: [...plan.handlers, handler] });
  }
  return [...plans.values()];
}

/**
 * Returns the bus and the options of the queue as text, to compare them. An omitted list of delays equals an
 * empty one, and an omitted `singleActiveConsumer` equals false.
 * @throws {Error} for a retry delay in the process of over 1,000 ms
 */
function settingsOf(
  bus: Bus,
  {
    retryDelaysMs = [],
    immediateRetryDelaysMs = [],
    outlastsOutages,
    prefetch,
    singleActiveConsumer = false,
  }: QueueOptions,
): string {
  if (immediateRetryDelaysMs.some((delayMs) => delayMs > MAX_IMMEDIATE_DELAY_MS))
    throw new Error('a retry delay in the process may be 1,000 ms at most; use retryDelaysMs');
  // The type demands every option, so that a new one is compared too.
  const settings: Record<keyof Omit<QueueOptions, 'queue'>, unknown> = {
    retryDelaysMs,
    immediateRetryDelaysMs,
    outlastsOutages,
    prefetch,
    singleActiveConsumer,
  };
  return JSON.stringify([bus, settings]);
}
