import { type Bus, type MessageContract, readMessage } from '@platform/contracts';
import { exchangeName, faultTypeUrns, messageTypeUrn } from './message-type';

/** MassTransit's content type for its JSON envelope. */
export const ENVELOPE_CONTENT_TYPE = 'application/vnd.masstransit+json';

/** A message ready to be published, in a form that a table can keep. */
export interface SerializedEnvelope {
  readonly bus: Bus;
  /** The fanout exchange it goes to. */
  readonly exchange: string;
  readonly messageId: string;
  /** The MassTransit JSON envelope. */
  readonly body: string;
  /** AMQP headers. */
  readonly headers: Readonly<Record<string, string | number>>;
}

export interface EnvelopeOptions {
  /** Namespace of the message types, e.g. `Platform.Contracts`. */
  readonly namespace: string;
  /** Identity of the message; receivers apply a message with the same id once. */
  readonly messageId: string;
  readonly sentAt: Date;
  readonly correlationId?: string | undefined;
  /** Given on by every message that another one causes; the messageId unless given. */
  readonly conversationId?: string | undefined;
  readonly requestId?: string | undefined;
  /** Where the answer goes. */
  readonly responseAddress?: string | undefined;
  readonly expiresAt?: Date | undefined;
  /** Who sends: the service's name. */
  readonly source?: string | undefined;
  /** The broker as MassTransit addresses it (see `hostAddress`); short addresses are written without it. */
  readonly hostAddress?: string | undefined;
  /** MassTransit's `host` section. */
  readonly host?: Readonly<Record<string, unknown>> | undefined;
  /** AMQP headers, e.g. `traceparent`; also written into the envelope. */
  readonly headers?: Readonly<Record<string, string | number>> | undefined;
}

/** Wraps a message in the MassTransit v8 JSON envelope.
 *  @throws {InvalidMessageError} if the message does not satisfy its own contract: better here than at every receiver. */
export function createEnvelope<T>(
  contract: MessageContract<T>,
  message: T,
  options: EnvelopeOptions,
): SerializedEnvelope {
  const exchange = exchangeName(options.namespace, contract.name);
  const body = envelopeBody({
    messageTypes: [messageTypeUrn(options.namespace, contract.name)],
    message: readMessage(contract, message),
    destinationAddress: options.hostAddress ? `${options.hostAddress}/${exchange}` : `exchange:${exchange}`,
    options,
  });
  return { bus: contract.bus, exchange, messageId: options.messageId, body, headers: options.headers ?? {} };
}

/** What a fault says about the message that could not be processed. */
export interface FaultDetails {
  readonly messageName: string;
  /** Null when the sender gave none; MassTransit reads a UUID or nothing there. */
  readonly faultedMessageId: string | null;
  readonly message: unknown;
  /** Type and text only: no stack leaves the process. */
  readonly error: { readonly type: string; readonly message: string };
}

/** The envelope of a MassTransit `Fault`, which tells a requester that it waits in vain. */
export function createFaultBody(
  fault: FaultDetails,
  destinationAddress: string,
  options: EnvelopeOptions,
): string {
  const message = {
    faultId: options.messageId,
    faultedMessageId: fault.faultedMessageId ?? undefined,
    timestamp: options.sentAt.toISOString(),
    exceptions: [{ exceptionType: fault.error.type, message: fault.error.message }],
    host: options.host,
    faultMessageTypes: [messageTypeUrn(options.namespace, fault.messageName)],
    message: fault.message,
  };
  return envelopeBody({
    messageTypes: faultTypeUrns(options.namespace, fault.messageName),
    message,
    destinationAddress,
    options,
  });
}

function envelopeBody(parts: {
  messageTypes: string[];
  message: unknown;
  destinationAddress: string;
  options: EnvelopeOptions;
}): string {
  const { options } = parts;
  const sourceAddress =
    options.source &&
    (options.hostAddress ? `${options.hostAddress}/${options.source}` : `queue:${options.source}`);
  // JSON.stringify drops what is undefined, so absent members are absent on the wire, as MassTransit writes them.
  return JSON.stringify({
    messageId: options.messageId,
    requestId: options.requestId,
    correlationId: options.correlationId,
    conversationId: options.conversationId ?? options.messageId,
    sourceAddress,
    destinationAddress: parts.destinationAddress,
    responseAddress: options.responseAddress,
    faultAddress: options.responseAddress,
    messageType: parts.messageTypes,
    message: parts.message,
    expirationTime: options.expiresAt?.toISOString(),
    sentTime: options.sentAt.toISOString(),
    headers: options.headers ?? {},
    host: options.host,
  });
}
