import { randomUUID } from 'node:crypto';
import { InvalidMessageError, readMessage } from '@platform/contracts';
import { currentTrace, inSpan } from '@platform/service-defaults';
import { SECOND_MS, sleep } from '@platform/time';
import type { ConsumeMessage } from 'amqplib';
import type { BusConnection } from '../broker/bus-connection';
import type { ConfirmPublisher } from '../broker/confirm-publisher';
import type { Settlement } from '../broker/queue-consumer';
import { errorQueue, retryQueue, skippedQueue } from '../broker/queue-topology';
import { isGuid } from '../envelope/create-envelope';
import { messageTrace, processSpan } from '../envelope/message-trace';
import { type ReceivedEnvelope, tryReadEnvelope } from '../envelope/read-envelope';
import { MessageReturnedError, UnacceptableMessageError, UnreadableMessageError } from '../errors';
import {
  attemptsOf,
  describeError,
  errorHeaders,
  type ErrorReason,
  forwardedProperties,
  originalExchange,
  postponementsOf,
  retryHeaders,
} from './delivery-headers';
import {
  decideRetry,
  type DeliveryContext,
  type Endpoint,
  type EndpointHandler,
  type HandlerResponse,
  selectHandler,
} from './endpoint';
import type { CountMessage } from '../message-metrics';
import { type ReceivedRequest, ResponseSender } from './response-sender';

const FORWARD_TIMEOUT_MS = 5 * SECOND_MS;
/** Pause before a delivery that could be neither processed nor forwarded goes back to the broker: never a hot loop. */
const HOLD_MS = 2 * SECOND_MS;

export interface PipelineOptions {
  readonly connection: BusConnection;
  readonly publisher: ConfirmPublisher;
  readonly count: CountMessage;
  /** Aborted when the process stops consuming: waits end and their deliveries go back to the broker. */
  readonly stopping: AbortSignal;
  /** Told that the endpoint's queues are gone and must be declared again. */
  readonly onBrokenTopology: () => void;
}

/** A delivery whose message has a handler here. */
interface Recognised extends ReceivedRequest {
  readonly handler: EndpointHandler;
}

type Outcome =
  | { readonly kind: 'done'; readonly response: HandlerResponse | null }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'refused'; readonly error: unknown }
  | { readonly kind: 'stopped' };

/** What happens to a delivery between the broker and its handler: read it, select the handler, process it with retries and respond,
 *  or forward it to where the policy says. A delivery is acknowledged only once it is done or safely forwarded. */
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

  /** Never rejects. Everything happens in the trace that the message came in, or in a new one. */
  handle(delivery: ConsumeMessage): Promise<Settlement> {
    const { content, properties } = delivery;
    const envelope = tryReadEnvelope(content, properties);
    const trace = messageTrace(properties.headers, envelope instanceof Error ? undefined : envelope.headers);
    return inSpan(processSpan(this.queue, properties.messageId, trace), async () => {
      try {
        return await this.settle(delivery, envelope);
      } catch (error) {
        currentTrace()?.span?.fail(describeError(error).type);
        this.warn(`a delivery goes back to the broker: ${describeError(error).message}`);
        if (error instanceof MessageReturnedError) this.options.onBrokenTopology();
        await this.pause(HOLD_MS);
        return 'requeue';
      }
    });
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
    const recognised = { delivery, envelope, handler, conversationId: conversationOf(envelope) };
    if (handler.isRequest && this.isExpired(envelope)) {
      const labels = { queue: this.queue, message: handler.contract.name };
      this.options.count('expired', labels);
      this.warn(`${labels.message} ${envelope.messageId ?? ''} came after its time and was dropped`);
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

  /** Whether the requester has given up. Carried out now, the request might undo a later one. */
  private isExpired({ expiresAt }: ReceivedEnvelope): boolean {
    return expiresAt !== null && expiresAt < this.options.connection.options.clock.now();
  }

  private async process(recognised: Recognised, message: unknown): Promise<Settlement> {
    const outcome = await this.attempt(recognised, message);
    if (outcome.kind === 'stopped') return 'requeue';
    if (outcome.kind === 'refused') return this.refuse(recognised, outcome.error);
    if (outcome.kind === 'failed') return this.retryOrGiveUp(recognised, outcome.error);
    if (outcome.response !== null) await this.responses.respond(recognised, outcome.response);
    const { name } = recognised.handler.contract;
    this.options.count('consumed', { queue: this.queue, message: name });
    this.options.connection.options.logger.log(
      `${this.queue}: consumed ${name} ${recognised.envelope.messageId ?? ''}`,
    );
    return 'ack';
  }

  /** Runs the handler, with the policy's waits inside the process. A message that has waited in the broker has those behind it. */
  private async attempt(recognised: Recognised, message: unknown): Promise<Outcome> {
    const context = contextOf(recognised);
    const isFirst = attemptsOf(recognised.delivery.properties.headers) === 0;
    const waitsMs = isFirst ? [...(this.endpoint.immediateRetryDelaysMs ?? [])] : [];
    for (;;) {
      try {
        return { kind: 'done', response: await recognised.handler.process(message, context) };
      } catch (error) {
        if (error instanceof UnacceptableMessageError) return { kind: 'refused', error };
        const waitMs = waitsMs.shift();
        if (waitMs === undefined) return { kind: 'failed', error };
        this.reportRetry(recognised, error, waitMs);
        await this.pause(waitMs);
        if (this.options.stopping.aborted) return { kind: 'stopped' };
      }
    }
  }

  /** Puts a message aside that no repetition would make better. */
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
    // A wait of the policy ends the count of the outage's.
    const waits = { ...waited, postponements: 0, ...decision };
    await this.forward(
      delivery,
      retryQueue(this.queue, decision.delayMs),
      retryHeaders(delivery, waits, { error, at }),
    );
    return 'ack';
  }

  /** Moves a message to the error queue, or to the skipped queue if no handler knows its type. */
  private async giveUp(delivery: ConsumeMessage, reason: ErrorReason, error: unknown): Promise<Settlement> {
    const { queue } = this;
    const attempts = attemptsOf(delivery.properties.headers);
    const at = this.options.connection.options.clock.now();
    const target = reason === 'unknown-type' ? skippedQueue(queue) : errorQueue(queue);
    await this.forward(delivery, target, errorHeaders(delivery, { reason, queue, attempts, error, at }));
    this.options.count('errored', { queue, reason });
    currentTrace()?.span?.fail(reason);
    this.warn(`a message was put into ${target} (${reason})`);
    return 'ack';
  }

  private async forward(
    delivery: ConsumeMessage,
    queue: string,
    headers: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const options = forwardedProperties(delivery, headers);
    const message = { exchange: '', routingKey: queue, content: delivery.content, options };
    await this.options.publisher.publish(message, FORWARD_TIMEOUT_MS);
  }

  private async fault(recognised: Recognised, error: unknown): Promise<void> {
    const { contract, isRequest } = recognised.handler;
    if (isRequest) await this.responses.fault(recognised, contract.name, error);
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
    this.reportFailure(recognised, error, `tried again in ${waitMs} ms`);
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

function contextOf({ envelope, conversationId }: Recognised): DeliveryContext {
  const { messageId, correlationId } = envelope;
  return { messageId: messageId ?? randomUUID(), correlationId, conversationId };
}

/** A client of another kind may number its messages as it likes; a conversation has a GUID. */
function conversationOf({ conversationId, messageId }: ReceivedEnvelope): string {
  return [conversationId, messageId].find(isGuid) ?? randomUUID();
}
