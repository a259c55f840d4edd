import type { MessageContract, RequestContract } from '@platform/contracts';
import type { RequestOutcome } from '../broker/bus-requester';
import { exchangeName, messageTypeUrn } from '../envelope/create-envelope';

/** Data of a delivery that a handler receives with the message. */
export interface DeliveryContext {
  /**
   * Id of the message. If the sender gave none: for a request, an id assigned on arrival; for an event, a
   * hash of its content and exchange.
   */
  readonly messageId: string;
  /** Hash of the message as it was sent, independent of the order of object members. */
  readonly contentHash: string;
  readonly correlationId: string | null;
  /** Conversation id for every message that this message causes. */
  readonly conversationId: string;
}

/** The response to a request: one of the contract's two messages. */
export interface HandlerResponse {
  readonly contract: MessageContract<unknown>;
  readonly message: unknown;
}

/**
 * One message type at a queue. `process` carries out the message and returns the response if it is a request.
 */
export interface EndpointHandler {
  readonly contract: MessageContract<unknown>;
  readonly isRequest: boolean;
  readonly process: (message: unknown, context: DeliveryContext) => Promise<HandlerResponse | null>;
}

/** Options for consuming a queue. */
export interface QueueOptions {
  /** Name of the durable queue, which all replicas share. */
  readonly queue: string;
  /**
   * Waits between attempts, in milliseconds. The message spends each in the broker, in the retry queue for
   * that delay. After the last one the message goes to `<queue>_error`. None unless given.
   */
  readonly retryDelaysMs?: readonly number[];
  /**
   * Waits between attempts that precede those in the broker, in milliseconds. The process holds the delivery
   * during each, so each is at most 1,000. None unless given.
   */
  readonly immediateRetryDelaysMs?: readonly number[];
  /**
   * Whether a message that fails because of an outage is never given up: after the last wait of the policy it
   * keeps waiting until the shared dependency is back. Unless given, true for a queue without
   * `retryDelaysMs`, else false.
   */
  readonly outlastsOutages?: boolean;
  /** Maximum deliveries processed at the same time; 10 unless given. */
  readonly prefetch?: number;
  /**
   * Whether the broker delivers to one consumer at a time. This preserves order: when that consumer is lost,
   * the next one receives its unsettled deliveries first. This is an argument of the queue, so it cannot
   * change once the queue exists.
   */
  readonly singleActiveConsumer?: boolean;
}

/** A queue and the handlers of its messages. */
export interface Endpoint extends QueueOptions {
  readonly handlers: readonly EndpointHandler[];
  /**
   * Whether an error means that a shared dependency (the database) is unavailable, rather than that this
   * message is bad.
   */
  readonly isOutage: (error: unknown) => boolean;
  /**
   * Whether an error means that a statement waited too long, usually for a lock. Each retry in the process
   * would hold the delivery for as long again.
   */
  readonly isTimeout?: (error: unknown) => boolean;
}

/** Returns the handler's outcome as the contract's matching response. */
export function responseOf(
  { succeeded, failed }: RequestContract<unknown, unknown, unknown>,
  outcome: RequestOutcome<unknown, unknown>,
): HandlerResponse {
  return 'succeeded' in outcome
    ? { contract: succeeded, message: outcome.succeeded }
    : { contract: failed, message: outcome.failed };
}

/**
 * Returns the handler for a message that declares `messageTypes`, trying the most specific type first. A
 * message without types is identified by its exchange or, at a queue with one handler, by the queue. Null if
 * no handler matches.
 */
export function selectHandler(
  handlers: readonly EndpointHandler[],
  message: { messageTypes: readonly string[]; exchange: string; namespace: string },
): EndpointHandler | null {
  const { messageTypes, exchange, namespace } = message;
  for (const type of messageTypes) {
    // MassTransit writes the URN. The AMQP type of a raw message may also be the exchange's name or the bare
    // name.
    const handler = handlers.find(({ contract: { name } }) =>
      [messageTypeUrn(namespace, name), exchangeName(namespace, name), name].includes(type),
    );
    if (handler !== undefined) return handler;
  }
  if (messageTypes.length > 0) return null;
  const byExchange = handlers.find(({ contract }) => exchangeName(namespace, contract.name) === exchange);
  return byExchange ?? (handlers.length === 1 ? (handlers[0] ?? null) : null);
}

/** Maximum wait between two attempts in the process. */
export const MAX_IMMEDIATE_DELAY_MS = 1_000;

/**
 * Waits, in order, of a message that fails because of an outage and has used up the waits of its policy; the
 * last one repeats. The first ten are 1 s each, because the caller of a command may be waiting for the
 * response. The later ones are longer, so that a long outage costs little.
 */
const OUTAGE_DELAYS_MS: readonly number[] = [
  ...Array<number>(10).fill(1_000),
  ...Array<number>(6).fill(5_000),
  15_000,
];

/** The decision about a failed message. `retry` counts against the policy, `postpone` does not. */
export type RetryDecision =
  | { readonly action: 'retry'; readonly delayMs: number; readonly attempts: number }
  | { readonly action: 'postpone'; readonly delayMs: number; readonly postponements: number }
  | { readonly action: 'give-up' };

/**
 * Decides about a failed message. The message gets the policy's next wait; when none remains, it goes to the
 * error queue. A queue that outlasts outages does not give a message up because of an outage: the message is
 * good, so it is retried until the database is back. Source: task messaging spec, Limits ("applies to all
 * exceptions" where a policy is given).
 * @param delivery.attempts how often the message has waited in the broker for another attempt
 * @param delivery.postponements how often it was postponed since then; 0 unless given
 */
export function decideRetry(delivery: {
  attempts: number;
  postponements?: number;
  retryDelaysMs?: readonly number[] | undefined;
  outlastsOutages?: boolean | undefined;
  isOutage: boolean;
}): RetryDecision {
  const { attempts, postponements = 0, retryDelaysMs = [], isOutage } = delivery;
  const delayMs = retryDelaysMs[attempts];
  if (delayMs !== undefined) return { action: 'retry', delayMs, attempts: attempts + 1 };
  if (!isOutage || !outlastsOutages(delivery)) return { action: 'give-up' };
  const outageDelayMs = OUTAGE_DELAYS_MS[Math.min(postponements, OUTAGE_DELAYS_MS.length - 1)]!;
  return { action: 'postpone', delayMs: outageDelayMs, postponements: postponements + 1 };
}

/**
 * Returns the wait, in milliseconds, of a delivery that is postponed because its key is busy or its handler
 * timed out. At a queue that outlasts outages it is a wait for an outage, at other queues the shortest retry
 * delay; undefined if there is none.
 */
export function postponementDelayMs(
  policy: Pick<QueueOptions, 'retryDelaysMs' | 'outlastsOutages'>,
  postponements: number,
): number | undefined {
  if (!outlastsOutages(policy)) return delaysOf(policy)[0];
  return OUTAGE_DELAYS_MS[Math.min(postponements, OUTAGE_DELAYS_MS.length - 1)];
}

/**
 * Returns every wait in the broker that a queue with this policy may need, without duplicates, shortest
 * first.
 */
export function delaysOf(policy: Pick<QueueOptions, 'retryDelaysMs' | 'outlastsOutages'>): number[] {
  const { retryDelaysMs = [] } = policy;
  const delays = outlastsOutages(policy) ? [...retryDelaysMs, ...OUTAGE_DELAYS_MS] : retryDelaysMs;
  return [...new Set(delays)].sort((a, b) => a - b);
}

function outlastsOutages(policy: {
  retryDelaysMs?: readonly number[] | undefined;
  outlastsOutages?: boolean | undefined;
}): boolean {
  return policy.outlastsOutages ?? (policy.retryDelaysMs ?? []).length === 0;
}
