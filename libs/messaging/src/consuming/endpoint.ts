import type { MessageContract, RequestContract } from '@platform/contracts';
import type { RequestOutcome } from '../broker/bus-requester';
import { exchangeName, messageTypeUrn } from '../envelope/create-envelope';

/** What a handler learns about the delivery besides the message itself. */
export interface DeliveryContext {
  /**
   * Identity of the message. For one without: of a request an id that was given to it on arrival, of an event
   * a hash of its content and address.
   */
  readonly messageId: string;
  /** Hash of the message as it was sent. The order of members does not count. */
  readonly contentHash: string;
  readonly correlationId: string | null;
  /** Pass it on to every message that this one causes. */
  readonly conversationId: string;
}

/** The response to a request: one of its contract's two messages. */
export interface HandlerResponse {
  readonly contract: MessageContract<unknown>;
  readonly message: unknown;
}

/**
 * One message type at a queue. `process` carries the message out, once in effect, and returns the response if
 * it is a request.
 */
export interface EndpointHandler {
  readonly contract: MessageContract<unknown>;
  readonly isRequest: boolean;
  readonly process: (message: unknown, context: DeliveryContext) => Promise<HandlerResponse | null>;
}

/** How a queue is consumed. */
export interface QueueOptions {
  /** Durable queue shared by all replicas. */
  readonly queue: string;
  /**
   * Waits between attempts in the broker, in milliseconds, one queue per delay; after the last one the
   * message goes to `<queue>_error`. None unless given.
   */
  readonly retryDelaysMs?: readonly number[];
  /**
   * Waits between attempts inside the process, in milliseconds, before the ones in the broker; 1,000 each at
   * most, because the delivery is held meanwhile. None unless given.
   */
  readonly immediateRetryDelaysMs?: readonly number[];
  /**
   * An outage gives no message up: after the last wait it goes on waiting until the shared dependency is
   * back. So it is in any case at a queue without `retryDelaysMs`.
   */
  readonly outlastsOutages?: boolean;
  /** Deliveries in process at one time; 10 unless given. */
  readonly prefetch?: number;
  /**
   * The broker delivers to one consumer at a time and, once that is lost, gives the next one first what it
   * had: the order holds. An argument of the queue, so it cannot change once that exists.
   */
  readonly singleActiveConsumer?: boolean;
}

/** A queue and how its messages are handled. */
export interface Endpoint extends QueueOptions {
  readonly handlers: readonly EndpointHandler[];
  /**
   * Whether an error means that a shared dependency (the database) is away, rather than that this message is
   * bad.
   */
  readonly isOutage: (error: unknown) => boolean;
  /**
   * Whether an error means that a statement waited too long, for a lock as a rule: tried again in the
   * process, it would hold its delivery for as long each time.
   */
  readonly isTimeout?: (error: unknown) => boolean;
}

/** The handler's outcome as the response that its contract names. */
export function responseOf(
  { succeeded, failed }: RequestContract<unknown, unknown, unknown>,
  outcome: RequestOutcome<unknown, unknown>,
): HandlerResponse {
  return 'succeeded' in outcome
    ? { contract: succeeded, message: outcome.succeeded }
    : { contract: failed, message: outcome.failed };
}

/**
 * The handler for a message that announces `messageTypes`, the most specific type first. A message that
 * announces none is identified by the exchange that it came through or, sent straight to a queue with one
 * handler, by the queue. Null for none.
 */
export function selectHandler(
  handlers: readonly EndpointHandler[],
  message: { messageTypes: readonly string[]; exchange: string; namespace: string },
): EndpointHandler | null {
  const { messageTypes, exchange, namespace } = message;
  for (const type of messageTypes) {
    // MassTransit writes the URN; a raw message's AMQP type may be the exchange's or the bare name as well.
    const handler = handlers.find(({ contract: { name } }) =>
      [messageTypeUrn(namespace, name), exchangeName(namespace, name), name].includes(type),
    );
    if (handler !== undefined) return handler;
  }
  if (messageTypes.length > 0) return null;
  const byExchange = handlers.find(({ contract }) => exchangeName(namespace, contract.name) === exchange);
  return byExchange ?? (handlers.length === 1 ? (handlers[0] ?? null) : null);
}

/** Longest wait between two attempts inside the process. */
export const MAX_IMMEDIATE_DELAY_MS = 1_000;

/**
 * Waits of a message that fails only because the database is away, when its policy has no wait left; the last
 * one repeats. Ten short ones, because a caller of a command waits for its response that long; then longer
 * ones, which cost little in a long outage.
 */
const OUTAGE_DELAYS_MS: readonly number[] = [
  ...Array<number>(10).fill(1_000),
  ...Array<number>(6).fill(5_000),
  15_000,
];

/** What happens to a failed message. `retry` counts against the policy, `postpone` does not. */
export type RetryDecision =
  | { readonly action: 'retry'; readonly delayMs: number; readonly attempts: number }
  | { readonly action: 'postpone'; readonly delayMs: number; readonly postponements: number }
  | { readonly action: 'give-up' };

/**
 * Takes the policy's next wait; when none is left, the message goes to the error queue. A queue that outlasts
 * outages does not give messages up over one: nothing is wrong with them, so they are tried again until the
 * database is back. Source: task messaging spec, Limits ("applies to all exceptions" where a policy is
 * given).
 * @param delivery.attempts how often the message has already waited in the broker
 * @param delivery.postponements how often it has waited for the end of an outage besides; 0 unless given
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
 * The wait of a delivery that is put off and not for its own fault: as in an outage, but without end and
 * without counting against the policy. Where the queue has no such waits, its shortest.
 */
export function putOffDelayMs(
  policy: Pick<QueueOptions, 'retryDelaysMs' | 'outlastsOutages'>,
  postponements: number,
): number | undefined {
  if (!outlastsOutages(policy)) return delaysOf(policy)[0];
  return OUTAGE_DELAYS_MS[Math.min(postponements, OUTAGE_DELAYS_MS.length - 1)];
}

/** Every wait that a queue with this policy may need in the broker, each once, shortest first. */
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
