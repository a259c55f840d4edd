import { randomUUID } from 'node:crypto';
import { InvalidMessageError, readMessage } from '@platform/contracts';
import { currentTrace, inSpan } from '@platform/service-defaults';
import { type Clock, SECOND_MS, sleep } from '@platform/time';
import type { ConsumeMessage } from 'amqplib';
import type { BusLink } from '../bus/bus-link';
import type { ConfirmPublisher } from '../bus/confirm-publisher';
import { errorQueue, retryQueue, skippedQueue } from '../bus/queue-topology';
import type { Settlement } from '../bus/supervised-consumer';
import { processSpan } from '../envelope/message-span';
import { type ReceivedEnvelope, readEnvelope } from '../envelope/read-envelope';
import { messageTrace } from '../envelope/trace-headers';
import { UnreadableMessageError } from '../errors';
import type { AnswerSender } from './answer-sender';
import {
  attemptsOf,
  describeError,
  forwardedProperties,
  originalExchange,
  parkedHeaders,
  type ParkReason,
  retryHeaders,
} from './delivery-headers';
import type { Answer, DeliveryContext, Endpoint, EndpointHandler, MessagingCounters } from './endpoint';
import { decideRetry } from './retry-decision';
import { selectHandler } from './select-handler';

const FORWARD_TIMEOUT_MS = 5 * SECOND_MS;
/** Pause before a delivery that could be neither processed nor forwarded goes back to the broker: never a hot loop. */
const HOLD_MS = 2 * SECOND_MS;

export interface PipelineDependencies {
  readonly link: BusLink;
  readonly namespace: string;
  readonly publisher: ConfirmPublisher;
  readonly answers: AnswerSender;
  readonly counters: MessagingCounters;
  readonly clock: Clock;
  /** Aborted when the process stops consuming: waits end and their deliveries go back to the broker. */
  readonly stopping: AbortSignal;
}

/** A delivery whose message was recognised. */
interface Recognised {
  readonly delivery: ConsumeMessage;
  readonly envelope: ReceivedEnvelope;
  readonly handler: EndpointHandler;
  readonly message: unknown;
}

/** Everything that happens to a delivery between the broker and its handler: read, recognise, process with retries, answer, and,
 *  when that fails, forward to where the policy says. A delivery is acknowledged only once it is done or safely forwarded. */
export class DeliveryPipeline {
  constructor(
    private readonly endpoint: Endpoint,
    private readonly dependencies: PipelineDependencies,
    /** The endpoint's queues are gone and must be declared again. */
    private readonly onBrokenTopology: () => void,
  ) {}

  /** Never rejects. Everything happens in the trace that the message came in, or in one of its own. */
  handle(delivery: ConsumeMessage): Promise<Settlement> {
    const envelope = this.read(delivery);
    const { properties } = delivery;
    const trace = messageTrace(properties.headers, envelope instanceof Error ? undefined : envelope.headers);
    return inSpan(processSpan(this.endpoint.queue, properties.messageId, trace), () =>
      this.settleOrHold(delivery, envelope),
    );
  }

  private async settleOrHold(
    delivery: ConsumeMessage,
    envelope: ReceivedEnvelope | Error,
  ): Promise<Settlement> {
    try {
      return await this.settle(delivery, envelope);
    } catch (error) {
      currentTrace()?.span?.fail(describeError(error).type);
      const { link } = this.dependencies;
      link.logger.warn(
        `${this.endpoint.queue}: a delivery goes back to the broker: ${describeError(error).message}`,
      );
      if (error instanceof Error && error.name === 'MessageReturnedError') this.onBrokenTopology();
      await this.pause(HOLD_MS);
      return 'requeue';
    }
  }

  private async settle(delivery: ConsumeMessage, envelope: ReceivedEnvelope | Error): Promise<Settlement> {
    if (envelope instanceof UnreadableMessageError) return this.park(delivery, 'unreadable', envelope);
    if (envelope instanceof Error) throw envelope;
    const handler = selectHandler(this.endpoint.handlers, {
      messageTypes: envelope.messageTypes,
      exchange: originalExchange(delivery),
      namespace: this.dependencies.namespace,
    });
    if (handler === null) return this.park(delivery, 'unknown-type', null);
    const message = this.check(handler, envelope);
    if (!(message instanceof InvalidMessageError))
      return this.process({ delivery, envelope, handler, message });
    await this.fault({ delivery, envelope, handler, message: envelope.message }, message);
    return this.park(delivery, 'invalid', message);
  }

  /** The error, whatever it is, is dealt with in the message's trace. */
  private read(delivery: ConsumeMessage): ReceivedEnvelope | Error {
    try {
      return readEnvelope(delivery.content, delivery.properties);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  private check(handler: EndpointHandler, envelope: ReceivedEnvelope): unknown {
    try {
      return readMessage(handler.contract, envelope.message);
    } catch (error) {
      if (error instanceof InvalidMessageError) return error;
      throw error;
    }
  }

  private async process(recognised: Recognised): Promise<Settlement> {
    const outcome = await this.attempt(recognised);
    if (outcome.kind === 'stopped') return 'requeue';
    if (outcome.kind === 'failed') return this.forward(recognised, outcome.error);
    if (outcome.answer !== null) await this.dependencies.answers.answer(recognised, outcome.answer);
    const { counters, link } = this.dependencies;
    const { name } = recognised.handler.contract;
    counters.consumed(this.endpoint.queue, name);
    link.logger.log(`${this.endpoint.queue}: consumed ${name} ${recognised.envelope.messageId ?? ''}`);
    return 'ack';
  }

  /** The handler, with the policy's waits inside the process. */
  private async attempt(
    recognised: Recognised,
  ): Promise<
    { kind: 'done'; answer: Answer | null } | { kind: 'failed'; error: unknown } | { kind: 'stopped' }
  > {
    const { stopping } = this.dependencies;
    const context = contextOf(recognised);
    const waitsMs = [...this.endpoint.policy.immediateRetryDelaysMs];
    for (;;) {
      try {
        return { kind: 'done', answer: await recognised.handler.process(recognised.message, context) };
      } catch (error) {
        const waitMs = waitsMs.shift();
        if (waitMs === undefined) return { kind: 'failed', error };
        this.reportRetry(recognised, error, waitMs);
        await this.pause(waitMs);
        if (stopping.aborted) return { kind: 'stopped' };
      }
    }
  }

  private async forward(recognised: Recognised, error: unknown): Promise<Settlement> {
    const { delivery } = recognised;
    const attempts = attemptsOf(delivery.properties.headers);
    const decision = decideRetry({
      attempts,
      retryDelaysMs: this.endpoint.policy.retryDelaysMs,
      isOutage: this.endpoint.isOutage(error),
    });
    if (decision.action === 'park') {
      this.report(recognised, error, 'given up');
      await this.fault(recognised, error);
      return this.park(delivery, 'failed', error);
    }
    this.reportRetry(recognised, error, decision.delayMs);
    const headers = retryHeaders(delivery, decision.action === 'retry' ? decision.attempts : attempts);
    await this.send(retryQueue(this.endpoint.queue, decision.delayMs), delivery, headers);
    return 'ack';
  }

  private async park(delivery: ConsumeMessage, reason: ParkReason, error: unknown): Promise<Settlement> {
    const { queue } = this.endpoint;
    const attempts = attemptsOf(delivery.properties.headers);
    const headers = parkedHeaders(delivery, {
      reason,
      queue,
      attempts,
      error,
      at: this.dependencies.clock.now(),
    });
    const target = reason === 'unknown-type' ? skippedQueue(queue) : errorQueue(queue);
    await this.send(target, delivery, headers);
    this.dependencies.counters.errored(queue, reason);
    currentTrace()?.span?.fail(reason);
    this.dependencies.link.logger.warn(`${queue}: a message was put into ${target} (${reason})`);
    return 'ack';
  }

  private async send(
    queue: string,
    delivery: ConsumeMessage,
    headers: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const options = forwardedProperties(delivery, headers);
    const message = { exchange: '', routingKey: queue, content: delivery.content, options };
    await this.dependencies.publisher.publish(message, FORWARD_TIMEOUT_MS);
  }

  private async fault(recognised: Recognised, error: unknown): Promise<void> {
    if (recognised.handler.isRequest)
      await this.dependencies.answers.fault(recognised, recognised.handler, error);
  }

  /** Waits, but not for a process that stops. */
  private async pause(durationMs: number): Promise<void> {
    const { clock, stopping } = this.dependencies;
    try {
      await (clock.sleep ?? sleep)(durationMs, stopping);
    } catch (error) {
      if (!stopping.aborted) throw error;
    }
  }

  private reportRetry(recognised: Recognised, error: unknown, waitMs: number): void {
    this.dependencies.counters.retried(this.endpoint.queue, recognised.handler.contract.name);
    this.report(recognised, error, `tried again in ${waitMs} ms`);
  }

  private report({ handler }: Recognised, error: unknown, what: string): void {
    const { type, message } = describeError(error);
    currentTrace()?.span?.fail(type);
    this.dependencies.link.logger.warn(
      `${this.endpoint.queue}: ${handler.contract.name} failed, ${what}: ${type}: ${message}`,
    );
  }
}

function contextOf({ envelope, delivery }: Recognised): DeliveryContext {
  const messageId = envelope.messageId ?? randomUUID();
  const sentAtMs = envelope.sentTime === null ? NaN : Date.parse(envelope.sentTime);
  return {
    messageId,
    correlationId: envelope.correlationId,
    conversationId: envelope.conversationId ?? messageId,
    sentAt: Number.isNaN(sentAtMs) ? null : new Date(sentAtMs),
    redelivered: delivery.fields.redelivered || attemptsOf(delivery.properties.headers) > 0,
    envelope,
  };
}
