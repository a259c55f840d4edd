import type { ConsumeMessage } from 'amqplib';
import { MessageReturnedError } from '../broker/broker-errors';
import type { BusConnection } from '../broker/bus-connection';
import { codeOf, type OutgoingMessage, publishAlone } from '../broker/confirm-publisher';
import { type Address, fitsProperty, parseAddress } from '../envelope/address';
import {
  createEnvelope,
  createFaultBody,
  ENVELOPE_CONTENT_TYPE,
  type EnvelopeOptions,
} from '../envelope/create-envelope';
import { messageTraceHeaders } from '../envelope/message-trace';
import type { ReceivedEnvelope } from '../envelope/read-envelope';
import { describeError } from '../headers/delivery-headers';
import type { HandlerResponse } from './endpoint';

const NOT_FOUND = 404;
const SEND_TIMEOUT_MS = 2_000;

/** A request as it was received. */
export interface ReceivedRequest {
  readonly delivery: ConsumeMessage;
  readonly envelope: ReceivedEnvelope;
  /** Conversation id for all messages that this request causes. */
  readonly conversationId: string;
}

/**
 * Sends responses and faults to requesters. A response goes to the envelope's responseAddress, a fault to its
 * faultAddress or else to its responseAddress. Without these addresses both go to the AMQP reply-to.
 */
export class ResponseSender {
  /** @param queue the queue that receives the requests */
  constructor(
    private readonly connection: BusConnection,
    private readonly queue: string,
  ) {}

  /**
   * @throws {BusUnavailableError | PublishTimeoutError | MessageRefusedError} if the response could not be
   * sent
   */
  async respond(request: ReceivedRequest, { contract, message }: HandlerResponse): Promise<void> {
    const { responseAddress } = request.envelope;
    const options = this.envelopeOptions(request, responseAddress);
    await this.send(request, responseAddress, createEnvelope(contract, message, options));
  }

  /** Tells the requester that processing failed. @throws as {@link respond} */
  async fault(request: ReceivedRequest, messageName: string, error: unknown): Promise<void> {
    const { envelope } = request;
    const destination = envelope.faultAddress ?? envelope.responseAddress;
    const options = this.envelopeOptions(request, destination);
    const details = {
      messageName,
      faultedMessageId: envelope.messageId,
      message: envelope.message,
      error: describeError(error),
    };
    const body = createFaultBody(details, options);
    await this.send(request, destination, { messageId: options.messageId, body });
  }

  private envelopeOptions(request: ReceivedRequest, destination: string | null): EnvelopeOptions {
    const { envelope, conversationId } = request;
    const address = replyAddress(request, destination);
    const correlationId =
      envelope.format === 'masstransit' ? (envelope.correlationId ?? undefined) : undefined;
    return {
      ...this.connection.envelopeOptions(),
      source: this.queue,
      destinationAddress: destination ?? (address === null ? undefined : `queue:${address.name}`),
      requestId: envelope.requestId ?? undefined,
      correlationId,
      conversationId,
    };
  }

  private async send(
    request: ReceivedRequest,
    destination: string | null,
    { messageId, body }: { messageId: string; body: string },
  ): Promise<void> {
    const { logger, bus } = this.connection.options;
    const address = replyAddress(request, destination);
    if (address === null) {
      logger.warn(`bus ${bus}: a request names no address for its response`);
      return;
    }
    const correlationId: unknown = request.delivery.properties.correlationId ?? request.envelope.requestId;
    const options = {
      contentType: ENVELOPE_CONTENT_TYPE,
      messageId,
      headers: messageTraceHeaders(),
      ...(typeof correlationId === 'string' && fitsProperty(correlationId) ? { correlationId } : {}),
    };
    const content = Buffer.from(body);
    for (const [exchange, routingKey] of routes(address)) {
      if (await this.trySend({ exchange, routingKey, content, options })) return;
    }
    logger.warn(`bus ${bus}: no requester listens at ${address.name} any more`);
  }

  /**
   * Returns whether the broker accepted the message. Uses its own channel: the exchange of a requester that
   * has gone is deleted with it, and publishing to a missing exchange closes the channel.
   */
  private async trySend(message: OutgoingMessage): Promise<boolean> {
    try {
      await publishAlone(this.connection, message, SEND_TIMEOUT_MS);
      return true;
    } catch (error) {
      if (error instanceof MessageReturnedError || codeOf(error) === NOT_FOUND) return false;
      throw error;
    }
  }
}

function replyAddress({ delivery }: ReceivedRequest, destination: string | null): Address | null {
  const address = destination === null ? null : parseAddress(destination);
  if (address !== null) return address;
  const replyTo: unknown = delivery.properties.replyTo;
  return typeof replyTo === 'string' && replyTo !== '' ? { kind: 'queue', name: replyTo } : null;
}

/**
 * Returns the pairs of exchange and routing key to try, in order. Our endpoints and MassTransit's are an
 * exchange in front of a queue of the same name; other clients may have only the queue.
 */
function routes({ kind, name }: Address): [exchange: string, routingKey: string][] {
  const toExchange: [string, string] = [name, ''];
  const toQueue: [string, string] = ['', name];
  if (kind === 'exchange') return [toExchange];
  return kind === 'queue' ? [toQueue, toExchange] : [toExchange, toQueue];
}
