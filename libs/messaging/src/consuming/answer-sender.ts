import { randomUUID } from 'node:crypto';
import type { Clock } from '@platform/time';
import type { ConsumeMessage } from 'amqplib';
import type { BusLink } from '../bus/bus-link';
import { ReplySender } from '../bus/reply-sender';
import { type Address, fitsProperty, parseAddress } from '../envelope/address';
import {
  createEnvelope,
  createFaultBody,
  ENVELOPE_CONTENT_TYPE,
  type EnvelopeOptions,
} from '../envelope/create-envelope';
import type { ReceivedEnvelope } from '../envelope/read-envelope';
import { hostInfo } from '../envelope/host-info';
import { messageTraceHeaders } from '../envelope/trace-headers';
import { describeError } from './delivery-headers';
import type { Answer, EndpointHandler } from './endpoint';

/** A request as it came in. */
export interface ReceivedRequest {
  readonly delivery: ConsumeMessage;
  readonly envelope: ReceivedEnvelope;
}

/** Sends answers and faults to whoever asked: answers to the envelope's responseAddress, faults to its faultAddress if it has one;
 *  failing that, to the AMQP reply-to. */
export class AnswerSender {
  private readonly replies: ReplySender;

  constructor(
    private readonly link: BusLink,
    private readonly namespace: string,
    private readonly clock: Clock,
  ) {
    this.replies = new ReplySender(link);
  }

  /** @throws {BusUnavailableError | PublishTimeoutError} if it could not be sent now; the request should come again */
  async answer(request: ReceivedRequest, { contract, message }: Answer): Promise<void> {
    const options = this.envelopeOptions(request);
    const { responseAddress } = request.envelope;
    await this.send(request, responseAddress, createEnvelope(contract, message, options));
  }

  /** Tells the requester that processing failed. @throws as {@link answer} */
  async fault(request: ReceivedRequest, handler: EndpointHandler | null, error: unknown): Promise<void> {
    const options = this.envelopeOptions(request);
    const details = {
      messageName: handler?.contract.name ?? 'unknown',
      faultedMessageId: request.envelope.messageId,
      message: request.envelope.message,
      error: describeError(error),
    };
    const destination = request.envelope.faultAddress ?? request.envelope.responseAddress;
    const body = createFaultBody(details, destination ?? '', options);
    await this.send(request, destination, { messageId: options.messageId, body });
  }

  private envelopeOptions({ envelope }: ReceivedRequest): EnvelopeOptions & { messageId: string } {
    return {
      namespace: this.namespace,
      messageId: randomUUID(),
      sentAt: this.clock.now(),
      requestId: envelope.requestId ?? undefined,
      correlationId: envelope.format === 'masstransit' ? (envelope.correlationId ?? undefined) : undefined,
      conversationId: envelope.conversationId ?? envelope.messageId ?? undefined,
      source: this.link.service,
      hostAddress: this.link.hostAddress,
      host: hostInfo(this.link.service),
      headers: messageTraceHeaders(),
    };
  }

  private async send(
    request: ReceivedRequest,
    destination: string | null,
    { messageId, body }: { messageId: string; body: string },
  ): Promise<void> {
    const address = replyAddress(request, destination);
    if (address === null) {
      this.link.logger.warn(`bus ${this.link.bus}: a request says nowhere where its answer should go`);
      return;
    }
    const correlationId: unknown = request.delivery.properties.correlationId ?? request.envelope.requestId;
    const options = {
      contentType: ENVELOPE_CONTENT_TYPE,
      messageId,
      headers: messageTraceHeaders(),
      ...(typeof correlationId === 'string' && fitsProperty(correlationId) ? { correlationId } : {}),
    };
    if (await this.replies.send(address, Buffer.from(body), options)) return;
    this.link.logger.warn(`bus ${this.link.bus}: nobody waits for an answer at ${address.name} any more`);
  }
}

function replyAddress({ delivery }: ReceivedRequest, destination: string | null): Address | null {
  const address = destination === null ? null : parseAddress(destination);
  if (address !== null) return address;
  const replyTo: unknown = delivery.properties.replyTo;
  return typeof replyTo === 'string' && replyTo !== '' ? { kind: 'queue', name: replyTo } : null;
}
