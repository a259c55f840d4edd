import 'reflect-metadata';
import type { MessageContract, RequestContract } from '@platform/contracts';
import type { Isolation } from '@platform/database';
import type { EntityManager } from 'typeorm';
import type { DeliveryContext } from '../consuming/endpoint';
import type { RequestOutcome } from '../requesting/bus-requester';

/** What a consumer's handler learns besides the message. */
export interface ConsumeContext extends DeliveryContext {
  /** The transaction that also holds the inbox row. Whatever the handler writes through it happens once per message. */
  readonly transaction: EntityManager;
}

export interface ConsumeOptions {
  /** Durable queue shared by all replicas. Several handlers may share one queue if their policies are the same. */
  readonly queue: string;
  /** Waits between attempts in the broker, in milliseconds; after the last one the message goes to `<queue>_error`. */
  readonly retryDelaysMs?: readonly number[];
  /** Waits between attempts inside the process, in milliseconds, before the ones in the broker. Keep them short or few: the
   *  delivery is held meanwhile. */
  readonly immediateRetryDelaysMs?: readonly number[];
  /** Deliveries in process at one time; the bus's prefetch unless given. */
  readonly prefetch?: number;
  /** Isolation of the transaction; READ COMMITTED unless given. */
  readonly isolation?: Isolation;
}

/** What a decorator notes down about a method. */
export interface HandlerMetadata {
  readonly contract: MessageContract<unknown>;
  /** Set for requests. */
  readonly answers: RequestContract<unknown, unknown, unknown> | null;
  readonly options: ConsumeOptions;
}

const HANDLERS = Symbol('MESSAGE_HANDLERS');

type MethodDecoratorFor<H> = <M extends H>(
  target: object,
  key: string | symbol,
  method: TypedPropertyDescriptor<M>,
) => void;

/** Marks a provider's method as the handler of a message. The inbox row, the handler and all it writes through
 *  `context.transaction` are one transaction; the message is acknowledged after its commit and a repetition of it silently. */
export function Consume<T>(
  contract: MessageContract<T>,
  options: ConsumeOptions,
): MethodDecoratorFor<(message: T, context: ConsumeContext) => Promise<void>> {
  return (_target, _key, method) => note(method.value, { contract, answers: null, options });
}

/** Marks a provider's method as the one that answers a request; otherwise like {@link Consume}. The answer is sent after the
 *  commit and kept with the inbox row, so that a repeated request is answered again but carried out once. */
export function Answer<T, S, F>(
  contract: RequestContract<T, S, F>,
  options: ConsumeOptions,
): MethodDecoratorFor<(message: T, context: ConsumeContext) => Promise<RequestOutcome<S, F>>> {
  return (_target, _key, method) => note(method.value, { contract, answers: contract, options });
}

/** What was noted on a method; empty for an ordinary one. */
export function handlersOf(method: object): readonly HandlerMetadata[] {
  return (Reflect.getMetadata(HANDLERS, method) as HandlerMetadata[] | undefined) ?? [];
}

function note(method: object | undefined, metadata: HandlerMetadata): void {
  if (method === undefined) throw new Error('only methods handle messages');
  Reflect.defineMetadata(HANDLERS, [...handlersOf(method), metadata], method);
}
