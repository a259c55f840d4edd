import { randomUUID } from 'node:crypto';
import { InvalidMessageError, readMessage } from '@platform/contracts';
import { currentTrace, inSpan } from '@platform/service-defaults';
import { MINUTE_MS, SECOND_MS, sleep } from '@platform/time';
import type { ConsumeMessage } from 'amqplib';
import {
  BusUnavailableError,
  MessageRefusedError,
  MessageReturnedError,
  PublishTimeoutError,
} from '../broker/broker-errors';
import type { BusConnection } from '../broker/bus-connection';
import { type ConfirmPublisher, isRefusal } from '../broker/confirm-publisher';
import type { Settlement } from '../broker/queue-consumer';
import { errorQueue, retryQueue, skippedQueue } from '../broker/queue-topology';
import { UnreadableMessageError } from '../envelope/envelope-errors';
import { messageTrace, processSpan } from '../envelope/message-trace';
import { type ReceivedEnvelope, tryReadEnvelope } from '../envelope/read-envelope';
import {
  attemptsOf,
  describeError,
  errorHeaders,
  type ErrorReason,
  EXCHANGE_HEADER,
  forwardedProperties,
  originalExchange,
  POSTPONEMENTS_HEADER,
  postponementsOf,
  responseRetryHeaders,
  responseTriesOf,
  retryHeaders,
  senderHeaders,
  TIMEOUTS_HEADER,
  timeoutsOf,
  withoutSenderHeaders,
} from '../headers/delivery-headers';
import type { CountMessage } from '../metrics/message-metrics';
import { contextOf, conversationOf } from './delivery-context';
import {
  decideRetry,
  delaysOf,
  type Endpoint,
  type EndpointHandler,
  type HandlerResponse,
  postponementDelayMs,
  selectHandler,
} from './endpoint';
import { BusyKeyError, UnacceptableMessageError } from './handler-errors';
import { type ReceivedRequest, ResponseSender } from './response-sender';

const FORWARD_TIMEOUT_MS = 5 * SECOND_MS;
/**
 * Pause before a delivery that could be neither processed nor forwarded is requeued. It prevents a hot loop.
 */
const HOLD_MS = 2 * SECOND_MS;
/** Maximum hold: below the 30 min after which the broker considers a delivery lost. */
const LONGEST_HOLD_MS = 15 * MINUTE_MS;
/** Maximum number of tries to send a response that is refused. */
const MAX_RESPONSE_TRIES = 5;

export interface PipelineOptions {
  readonly connection: BusConnection;
  readonly publisher: ConfirmPublisher;
  readonly count: CountMessage;
  /** Aborted when the process stops consuming. Waits then end, and their deliveries return to the broker. */
  readonly stopping: AbortSignal;
  /** Called when the endpoint's queues are gone and must be declared again. */
  readonly onBrokenTopology: () => void;
}

/** A delivery whose message has a handler at this queue. */
interface Recognised extends ReceivedRequest {
  readonly handler: EndpointHandler;
}

type Outcome =
  | { readonly kind: 'done'; readonly response: HandlerResponse | null }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'refused'; readonly error: unknown }
  | { readonly kind: 'timed-out'; readonly error: unknown; readonly timeouts: number }
  | { readonly kind: 'busy'; readonly error: BusyKeyError }
  | { readonly kind: 'stopped' };

/**
 * Handles a delivery: reads it, selects its handler, processes it with retries and responds, or forwards it
 * to a retry, error or skipped queue. A delivery is acknowledged only once it is processed or safely
 * forwarded.
 */
export class DeliveryPipeline {
  private readonly responses: ResponseSender;
  private readonly queue: string;

  constructor(
    private readonly endpoint: Endpoint,
    private readonly options: PipelineOptions,
  ) {
    this.responses = new ResponseSender(options.connection, endpoint.queue);
    this.queue = endpoint.queue;
  }

  /** Settles a delivery; never rejects. Runs in the trace that the message carries, or in a new one. */
  handle(delivery: ConsumeMessage): Promise<Settlement> {
    const { content, properties } = delivery;
    const envelope = tryReadEnvelope(content, properties);
    const trace = messageTrace(properties.headers, envelope instanceof Error ? undefined : envelope.headers);
    return inSpan(processSpan(this.queue, properties.messageId, trace), async () => {
      try {
        return await this.settleOrGiveUp(delivery, envelope);
      } catch (error) {
        currentTrace()?.span?.fail(describeError(error).type);
        this.warn(`a delivery returns to the broker: ${describeError(error).message}`);
        if (error instanceof MessageReturnedError) this.options.onBrokenTopology();
        await this.hold();
        return 'requeue';
      }
    });
  }

  /**
   * Moves the message to the error queue on any error that is not the broker's failure: every further
   * delivery would fail in the same way.
   */
  private async settleOrGiveUp(
    delivery: ConsumeMessage,
    envelope: ReceivedEnvelope | Error,
  ): Promise<Settlement> {
    try {
      return await this.settle(delivery, envelope);
    } catch (error) {
      if (isBusFailure(error)) throw error;
      return await this.giveUp(delivery, 'failed', error);
    }
  }

  private async settle(delivery: ConsumeMessage, envelope: ReceivedEnvelope | Error): Promise<Settlement> {
    if (envelope instanceof UnreadableMessageError) return this.giveUp(delivery, 'unreadable', envelope);
    if (envelope instanceof Error) throw envelope;
    const handler = selectHandler(this.endpoint.handlers, {
      messageTypes: envelope.messageTypes,
      exchange: originalExchange(delivery),
      namespace: this.options.connection.options.namespace,
    });
    if (handler === null) return this.giveUp(delivery, 'unknown-type', null);
    if (handler.isRequest && envelope.messageId === null) return this.identify(delivery);
    const recognised = { delivery, envelope, handler, conversationId: conversationOf(envelope) };
    if (handler.isRequest && this.isExpired(envelope)) {
      const labels = { queue: this.queue, message: handler.contract.name };
      this.options.count('expired', labels);
      this.warn(
        `${labels.message} ${envelope.messageId ?? ''} arrived after its expiration time and was dropped`,
      );
      return 'ack';
    }
    let message: unknown;
    try {
      message = readMessage(handler.contract, envelope.message);
    } catch (error) {
      if (!(error instanceof InvalidMessageError)) throw error;
      return this.refuse(recognised, error);
    }
    return this.process(recognised, message);
  }

  /**
   * Whether the requester has given up. An expired request is not carried out, because it might undo a later
   * one.
   */
  private isExpired({ expiresAt }: ReceivedEnvelope): boolean {
    return expiresAt !== null && expiresAt < this.options.connection.options.clock.now();
  }

  private async process(recognised: Recognised, message: unknown): Promise<Settlement> {
    const outcome = await this.attempt(recognised, message);
    if (outcome.kind === 'stopped') return 'requeue';
    if (outcome.kind === 'refused') return this.refuse(recognised, outcome.error);
    if (outcome.kind === 'busy') return this.postponeBusy(recognised, outcome.error);
    if (outcome.kind === 'timed-out') return this.retryTimeout(recognised, outcome);
    if (outcome.kind === 'failed') return this.retryOrGiveUp(recognised, outcome.error);
    if (outcome.response !== null) {
      const refusal = await this.refusalOf(this.responses.respond(recognised, outcome.response));
      if (refusal !== null) return this.retryResponse(recognised, refusal);
    }
    const { name } = recognised.handler.contract;
    this.options.count('consumed', { queue: this.queue, message: name });
    this.options.connection.options.logger.log(
      `${this.queue}: consumed ${name} ${recognised.envelope.messageId ?? ''}`,
    );
    return 'ack';
  }

  /**
   * Assigns an id to a request without one and sends it to its queue again, so that repetitions of it can be
   * recognised. A hash of its content cannot serve as the id, because the same request may legitimately be
   * sent twice, with another request in between.
   */
  private async identify(delivery: ConsumeMessage): Promise<Settlement> {
    const identified = { ...delivery, properties: { ...delivery.properties, messageId: randomUUID() } };
    await this.forward(identified, this.queue, (received) => ({
      ...senderHeaders(received),
      [EXCHANGE_HEADER]: originalExchange(received),
    }));
    return 'ack';
  }

  /**
   * Returns the error if a response or a fault is refused at the address that the requester chose; null if it
   * was sent.
   * @throws if the bus is unavailable, which is not the requester's fault
   */
  private async refusalOf(sending: Promise<void>): Promise<unknown> {
    try {
      await sending;
      return null;
    } catch (error) {
      const isAway = error instanceof BusUnavailableError && !isRefusal(error);
      if (isAway || !this.options.connection.isUsable) throw error;
      return error;
    }
  }

  /**
   * Schedules another try for a request whose response was refused. The request is not carried out again: its
   * stored response is sent.
   */
  private async retryResponse(recognised: Recognised, error: unknown): Promise<Settlement> {
    const { delivery } = recognised;
    const tries = responseTriesOf(delivery.properties.headers) + 1;
    const [delayMs] = delaysOf(this.endpoint);
    if (tries >= MAX_RESPONSE_TRIES || delayMs === undefined) {
      this.reportFailure(recognised, error, 'its response was given up');
      return this.giveUp(delivery, 'unanswered', error);
    }
    this.reportRetry(recognised, error, delayMs);
    const at = this.options.connection.options.clock.now();
    await this.forward(delivery, retryQueue(this.queue, delayMs), (received) =>
      responseRetryHeaders(received, tries, { error, at }),
    );
    return 'ack';
  }

  /**
   * Runs the handler, retrying after the policy's waits inside the process. A message that has already waited
   * in the broker has used those up.
   */
  private async attempt(recognised: Recognised, message: unknown): Promise<Outcome> {
    const context = contextOf(recognised);
    const { headers } = recognised.delivery.properties;
    const isFirst = attemptsOf(headers) === 0;
    const timeouts = timeoutsOf(headers);
    const waitsMs = isFirst ? (this.endpoint.immediateRetryDelaysMs ?? []).slice(timeouts) : [];
    for (;;) {
      try {
        return { kind: 'done', response: await recognised.handler.process(message, context) };
      } catch (error) {
        if (error instanceof UnacceptableMessageError) return { kind: 'refused', error };
        if (error instanceof BusyKeyError) return { kind: 'busy', error };
        const waitMs = waitsMs.shift();
        const isTimeout = this.endpoint.isTimeout?.(error) === true;
        if (isTimeout && waitMs !== undefined) return { kind: 'timed-out', error, timeouts: timeouts + 1 };
        if (waitMs === undefined) return { kind: 'failed', error };
        this.reportRetry(recognised, error, waitMs);
        await this.pause(waitMs);
        if (this.options.stopping.aborted) return { kind: 'stopped' };
      }
    }
  }

  /** Moves a message that no retry could improve to the error queue, and sends a fault if it is a request. */
  private async refuse(recognised: Recognised, error: unknown): Promise<Settlement> {
    await this.fault(recognised, error);
    return this.giveUp(recognised.delivery, 'invalid', error);
  }

  private async retryOrGiveUp(recognised: Recognised, error: unknown): Promise<Settlement> {
    const { delivery } = recognised;
    const { headers } = delivery.properties;
    const waited = { attempts: attemptsOf(headers), postponements: postponementsOf(headers) };
    const { retryDelaysMs, outlastsOutages } = this.endpoint;
    const isOutage = this.endpoint.isOutage(error);
    const decision = decideRetry({ ...waited, retryDelaysMs, outlastsOutages, isOutage });
    if (decision.action === 'give-up') {
      this.reportFailure(recognised, error, 'given up');
      await this.fault(recognised, error);
      return this.giveUp(delivery, 'failed', error);
    }
    this.reportRetry(recognised, error, decision.delayMs);
    const at = this.options.connection.options.clock.now();
    // `decision` sets the attempts of a retry or the postponements of a postponement. A retry resets the
    // postponements.
    const waits = { ...waited, postponements: 0, ...decision };
    await this.forward(delivery, retryQueue(this.queue, decision.delayMs), (received) =>
      retryHeaders(received, waits, { error, at }),
    );
    return 'ack';
  }

  /** Makes a message whose handler timed out wait in the broker, instead of retrying it in the process. */
  private async retryTimeout(
    recognised: Recognised,
    { error, timeouts }: { error: unknown; timeouts: number },
  ): Promise<Settlement> {
    const delayMs = postponementDelayMs(this.endpoint, 0);
    if (delayMs === undefined) return this.retryOrGiveUp(recognised, error);
    this.reportRetry(recognised, error, delayMs);
    await this.waitInBroker(recognised, delayMs, error, { [TIMEOUTS_HEADER]: timeouts });
    return 'ack';
  }

  /**
   * Postpones a message whose key is busy, to make room for other keys. This does not count as an attempt.
   */
  private async postponeBusy(recognised: Recognised, error: BusyKeyError): Promise<Settlement> {
    const { handler, delivery } = recognised;
    const postponements = postponementsOf(delivery.properties.headers);
    const delayMs = postponementDelayMs(this.endpoint, postponements);
    if (delayMs === undefined) throw error;
    this.options.count('put-off', { queue: this.queue, message: handler.contract.name });
    await this.waitInBroker(recognised, delayMs, error, { [POSTPONEMENTS_HEADER]: postponements + 1 });
    return 'ack';
  }

  /**
   * Makes a delivery wait in the broker without counting an attempt.
   * @param counts headers to set in addition
   */
  private async waitInBroker(
    { delivery }: Recognised,
    delayMs: number,
    error: unknown,
    counts: Readonly<Record<string, number>>,
  ): Promise<void> {
    const { headers } = delivery.properties;
    const waited = { attempts: attemptsOf(headers), postponements: postponementsOf(headers) };
    const at = this.options.connection.options.clock.now();
    await this.forward(delivery, retryQueue(this.queue, delayMs), (received) => ({
      ...retryHeaders(received, waited, { error, at }),
      ...counts,
    }));
  }

  /** Moves a message to the error queue, or to the skipped queue if no handler knows its type. */
  private async giveUp(delivery: ConsumeMessage, reason: ErrorReason, error: unknown): Promise<Settlement> {
    const { queue } = this;
    const attempts = attemptsOf(delivery.properties.headers);
    const at = this.options.connection.options.clock.now();
    const target = reason === 'unknown-type' ? skippedQueue(queue) : errorQueue(queue);
    await this.forward(delivery, target, (received) =>
      errorHeaders(received, { reason, queue, attempts, error, at }),
    );
    this.options.count('errored', { queue, reason });
    currentTrace()?.span?.fail(reason);
    this.warn(`a message was moved to ${target} (${reason})`);
    return 'ack';
  }

  private async forward(
    delivery: ConsumeMessage,
    queue: string,
    headersOf: (received: ConsumeMessage) => Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const send = (received: ConsumeMessage): Promise<void> => {
      const options = forwardedProperties(received, headersOf(received));
      const message = { exchange: '', routingKey: queue, content: delivery.content, options };
      return this.options.publisher.publish(message, FORWARD_TIMEOUT_MS);
    };
    try {
      await send(delivery);
    } catch (error) {
      if (isBusFailure(error)) throw error;
      // The sender's client may have encoded headers or properties that ours cannot. The body matters more,
      // so it is forwarded without them.
      await send(withoutSenderHeaders(delivery));
    }
  }

  /** Sends a fault if the message is a request. A refused fault is logged and not sent again. */
  private async fault(recognised: Recognised, error: unknown): Promise<void> {
    const { contract, isRequest } = recognised.handler;
    if (!isRequest) return;
    const refusal = await this.refusalOf(this.responses.fault(recognised, contract.name, error));
    if (refusal !== null) this.warn(`a fault could not be sent: ${describeError(refusal).message}`);
  }

  /**
   * Waits before a delivery is requeued, for as long as the bus is unusable (15 min at most). Each requeue
   * counts as a delivery, and the broker gives a message up after 100.
   */
  private async hold(): Promise<void> {
    const { connection, stopping } = this.options;
    const { clock } = connection.options;
    const untilMs = clock.monotonicMs() + LONGEST_HOLD_MS;
    do await this.pause(HOLD_MS);
    while (!connection.isUsable && !stopping.aborted && clock.monotonicMs() < untilMs);
  }

  /** Waits, but returns at once when the process stops. */
  private async pause(durationMs: number): Promise<void> {
    const { connection, stopping } = this.options;
    try {
      await (connection.options.clock.sleep ?? sleep)(durationMs, stopping);
    } catch (error) {
      if (!stopping.aborted) throw error;
    }
  }

  private reportRetry(recognised: Recognised, error: unknown, waitMs: number): void {
    this.options.count('retried', { queue: this.queue, message: recognised.handler.contract.name });
    this.reportFailure(recognised, error, `retrying in ${waitMs} ms`);
  }

  private reportFailure({ handler }: Recognised, error: unknown, consequence: string): void {
    const { type, message } = describeError(error);
    currentTrace()?.span?.fail(type);
    this.warn(`${handler.contract.name} failed, ${consequence}: ${type}: ${message}`);
  }

  private warn(message: string): void {
    this.options.connection.options.logger.warn(`${this.queue}: ${message}`);
  }
}

/** Whether the error is the broker's failure rather than the message's. */
function isBusFailure(error: unknown): boolean {
  return (
    error instanceof BusUnavailableError ||
    error instanceof PublishTimeoutError ||
    error instanceof MessageReturnedError ||
    error instanceof MessageRefusedError
  );
}
