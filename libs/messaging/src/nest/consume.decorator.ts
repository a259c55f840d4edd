import 'reflect-metadata';
import type { Bus, MessageContract, RequestContract } from '@platform/contracts';
import type { Isolation } from '@platform/database';
import type { EntityManager } from 'typeorm';
import type { RequestOutcome } from '../broker/bus-requester';
import { type DeliveryContext, MAX_IMMEDIATE_DELAY_MS, type QueueOptions } from '../consuming/endpoint';

/** What a consumer's handler learns besides the message. */
export interface ConsumeContext extends DeliveryContext {
  /**
   * The transaction that also holds the inbox row. Whatever the handler writes through it happens once per
   * message.
   */
  readonly transaction: EntityManager;
}

/** Several handlers may share one queue if they agree about its options. */
export interface ConsumeOptions extends QueueOptions {
  /** Isolation of the transaction; READ COMMITTED unless given. */
  readonly isolation?: Isolation;
  /**
   * The order of its messages does not count: those of a facility that has just had a turn may be put off for
   * those of others.
   */
  readonly takesTurns?: boolean;
}

/** What a decorator records about a method. */
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
 * Marks a provider's method as the handler of a message. The inbox row, the handler and all it writes through
 * `context.transaction` are one transaction. The message is acknowledged after the commit; a repetition is
 * acknowledged unprocessed.
 */
export function Consume<T>(
  contract: MessageContract<T>,
  options: ConsumeOptions,
): MethodDecoratorFor<(message: T, context: ConsumeContext) => Promise<void>> {
  return (_target, _key, method) => record(method.value, { contract, request: null, options });
}

/**
 * Marks a provider's method as the one that responds to a request; otherwise like {@link Consume}. The
 * response is sent after the commit and stored with the inbox row: a repeated request gets its response again
 * but is carried out once.
 */
export function Respond<T, S, F>(
  contract: RequestContract<T, S, F>,
  options: ConsumeOptions,
): MethodDecoratorFor<(message: T, context: ConsumeContext) => Promise<RequestOutcome<S, F>>> {
  return (_target, _key, method) => record(method.value, { contract, request: contract, options });
}

/** What the decorators recorded on a method; empty for an ordinary one. */
export function handlersOf(method: object): readonly HandlerMetadata[] {
  return (Reflect.getMetadata(HANDLERS, method) as HandlerMetadata[] | undefined) ?? [];
}

function record(method: object | undefined, metadata: HandlerMetadata): void {
  if (method === undefined) throw new Error('only methods handle messages');
  Reflect.defineMetadata(HANDLERS, [...handlersOf(method), metadata], method);
}

/** A marked method, ready to be called. */
export interface DiscoveredHandler extends HandlerMetadata {
  readonly invoke: (message: unknown, context: ConsumeContext) => Promise<unknown>;
}

/** A queue with all its handlers. */
export interface EndpointPlan {
  readonly bus: Bus;
  readonly options: QueueOptions;
  readonly handlers: readonly DiscoveredHandler[];
}

/**
 * Groups handlers by queue.
 * @throws {Error} if two handlers of one queue want the same message, or disagree about the queue's bus,
 * retries or prefetch, of which it can have only one each
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

function settingsOf(
  bus: Bus,
  { retryDelaysMs = [], immediateRetryDelaysMs = [], outlastsOutages, prefetch }: QueueOptions,
): string {
  if (immediateRetryDelaysMs.some((delayMs) => delayMs > MAX_IMMEDIATE_DELAY_MS))
    throw new Error('waits longer than a second belong into the broker');
  return JSON.stringify([bus, retryDelaysMs, immediateRetryDelaysMs, outlastsOutages, prefetch]);
}
