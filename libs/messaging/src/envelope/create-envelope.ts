import { hostname } from 'node:os';
import { type Bus, type MessageContract, readMessage } from '@platform/contracts';
import { MAX_BODY_BYTES } from './body-limits';
import { MessageTooLargeError } from './envelope-errors';

/**
 * Returns the name of a message type's durable fanout exchange, as MassTransit names it: `Namespace:Type`.
 */
export function exchangeName(namespace: string, messageName: string): string {
  return `${namespace}:${messageName}`;
}

/** Returns MassTransit's URN of a message type: `urn:message:Namespace:Type`. */
export function messageTypeUrn(namespace: string, messageName: string): string {
  return `urn:message:${namespace}:${messageName}`;
}

/** Whether a URN denotes a fault, of any message. */
export function isFaultUrn(urn: string): boolean {
  return /^urn:message:MassTransit:(Receive)?Fault/i.test(urn);
}

const PROCESS = {
  machineName: hostname(),
  processId: process.pid,
  frameworkVersion: process.version,
  operatingSystemVersion: process.platform,
};

/** The MassTransit version that envelopes report; some receivers require one. */
const MASSTRANSIT_VERSION = '8.0.0';

/** Returns MassTransit's `host` section for a service in this process. */
export function hostInfo(service: string, version: string): Readonly<Record<string, unknown>> {
  const assembly = { assembly: service, assemblyVersion: version };
  return { ...PROCESS, processName: service, ...assembly, massTransitVersion: MASSTRANSIT_VERSION };
}

/** Whether a text is a GUID. MassTransit refuses an envelope whose ids are not GUIDs. */
export function isGuid(text: string | null): text is string {
  return text !== null && /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text);
}

/** MassTransit's content type for its JSON envelope. */
export const ENVELOPE_CONTENT_TYPE = 'application/vnd.masstransit+json';

/** A message ready to publish, in a form that a table can store. */
export interface SerializedEnvelope {
  readonly bus: Bus;
  /** The fanout exchange that the message is published to. */
  readonly exchange: string;
  /** Whether publishing fails if the message is routed to no queue. */
  readonly needsReceiver: boolean;
  readonly messageId: string;
  /** The MassTransit JSON envelope. */
  readonly body: string;
  /** AMQP headers. */
  readonly headers: Readonly<Record<string, string | number>>;
}

export interface EnvelopeOptions {
  /** Namespace of the message types, e.g. `Platform.Contracts`. */
  readonly namespace: string;
  /** Id of the message; receivers apply a message with the same id once. */
  readonly messageId: string;
  readonly sentAt: Date;
  readonly correlationId?: string | undefined;
  /** Shared by all messages that one message causes, directly or indirectly; the messageId unless given. */
  readonly conversationId?: string | undefined;
  /** The correlationId of the message that caused this one. */
  readonly initiatorId?: string | undefined;
  readonly requestId?: string | undefined;
  /** Address that the message is sent to; the exchange of its type unless given. */
  readonly destinationAddress?: string | undefined;
  /** Address that responses and faults are sent to. */
  readonly responseAddress?: string | undefined;
  readonly expiresAt?: Date | undefined;
  /** Exchange or queue named as the sender; it should exist. */
  readonly source?: string | undefined;
  /** The broker's MassTransit address. Without it, addresses use the short form. */
  readonly hostAddress?: string | undefined;
  /** MassTransit's `host` section. */
  readonly host?: Readonly<Record<string, unknown>> | undefined;
  /** AMQP headers, e.g. `traceparent`; also written into the envelope. */
  readonly headers?: Readonly<Record<string, string | number>> | undefined;
}

/**
 * Wraps a message in the MassTransit v8 JSON envelope. A bad message fails here rather than at every
 * receiver.
 * @throws {InvalidMessageError} if the message does not satisfy its own contract
 * @throws {MessageTooLargeError} if the envelope is larger than `MAX_BODY_BYTES`
 */
export function createEnvelope<T>(
  contract: MessageContract<T>,
  message: T,
  options: EnvelopeOptions,
): SerializedEnvelope {
  const exchange = exchangeName(options.namespace, contract.name);
  const body = envelopeBody({
    messageTypes: [messageTypeUrn(options.namespace, contract.name)],
    message: readMessage(contract, message),
    destinationAddress:
      options.destinationAddress ??
      (options.hostAddress ? `${options.hostAddress}/${exchange}` : `exchange:${exchange}`),
    options,
  });
  const bytes = Buffer.byteLength(body);
  if (bytes > MAX_BODY_BYTES) throw new MessageTooLargeError(contract.name, bytes, MAX_BODY_BYTES);
  const { bus, needsReceiver } = contract;
  const { messageId, headers = {} } = options;
  return { bus, exchange, needsReceiver, messageId, body, headers };
}

/** Details of a message that could not be processed, for its fault. */
export interface FaultDetails {
  readonly messageName: string;
  /**
   * Null if the sender gave none. Omitted from the fault unless it is a GUID, because MassTransit accepts
   * nothing else.
   */
  readonly faultedMessageId: string | null;
  readonly message: unknown;
  /** Type and text only: a stack trace never leaves the process. */
  readonly error: { readonly type: string; readonly message: string };
}

/** Returns the envelope of a MassTransit `Fault`, which tells a requester that no response will follow. */
export function createFaultBody(
  fault: FaultDetails,
  { destinationAddress = '', ...options }: EnvelopeOptions,
): string {
  const message = {
    faultId: options.messageId,
    faultedMessageId: isGuid(fault.faultedMessageId) ? fault.faultedMessageId : undefined,
    timestamp: options.sentAt.toISOString(),
    exceptions: [{ exceptionType: fault.error.type, message: fault.error.message }],
    host: options.host,
    faultMessageTypes: [messageTypeUrn(options.namespace, fault.messageName)],
    message: fault.message,
  };
  const faulted = exchangeName(options.namespace, fault.messageName);
  return envelopeBody({
    messageTypes: [`urn:message:MassTransit:Fault[[${faulted}]]`, 'urn:message:MassTransit:Fault'],
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
  // Every member of MassTransit's `JsonMessageEnvelope`; null if unset.
  return JSON.stringify({
    messageId: options.messageId,
    requestId: options.requestId ?? null,
    correlationId: options.correlationId ?? null,
    conversationId: options.conversationId ?? options.messageId,
    initiatorId: options.initiatorId ?? null,
    sourceAddress: sourceAddress ?? null,
    destinationAddress: parts.destinationAddress,
    responseAddress: options.responseAddress ?? null,
    faultAddress: options.responseAddress ?? null,
    messageType: parts.messageTypes,
    message: parts.message,
    expirationTime: options.expiresAt?.toISOString() ?? null,
    sentTime: options.sentAt.toISOString(),
    headers: options.headers ?? {},
    host: options.host ?? null,
  });
}
