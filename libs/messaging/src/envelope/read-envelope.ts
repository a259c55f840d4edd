import { UnreadableMessageError } from '../errors';
import { readBody } from './body-limits';

/** The AMQP properties that describe the body. */
export interface TransportProperties {
  readonly contentType?: unknown;
  readonly messageId?: unknown;
  readonly correlationId?: unknown;
  readonly type?: unknown;
  readonly timestamp?: unknown;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
}

/** A received message: MassTransit's envelope, or a bare JSON object described by its AMQP properties. */
export interface ReceivedEnvelope {
  readonly format: 'masstransit' | 'raw';
  /** Null when the sender gave none; then a repetition cannot be recognised. */
  readonly messageId: string | null;
  readonly requestId: string | null;
  readonly correlationId: string | null;
  readonly conversationId: string | null;
  readonly responseAddress: string | null;
  readonly faultAddress: string | null;
  /** After this nobody waits for a response; null when the sender named no time. */
  readonly expiresAt: Date | null;
  /** As announced, most specific first; empty when a raw message names none. */
  readonly messageTypes: readonly string[];
  /** The message itself, not yet checked against a contract. */
  readonly message: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
}

const JSON_TYPE = /^(application|text)\/([\w.-]+\+)?json\s*(;|$)/i;

/**
 * Reads a delivery. Member names of the envelope match in any case, and only `message` is required, because
 * other clients differ in what they write.
 * @throws {UnreadableMessageError} if the body is not a JSON object in UTF-8 within the limits of size and
 * depth, or its content type is not JSON
 */
export function readEnvelope(content: Buffer, properties: TransportProperties): ReceivedEnvelope {
  const contentType = text(properties.contentType);
  if (contentType !== null && contentType !== '' && !JSON_TYPE.test(contentType)) {
    throw new UnreadableMessageError('the content type is not JSON');
  }
  const members = jsonObject(content);
  const byName = new Map(Object.entries(members).map(([key, value]) => [key.toLowerCase(), value]));
  const announced = contentType !== null && /vnd\.masstransit/i.test(contentType);
  const body = byName.get('message');
  const looksWrapped = Array.isArray(byName.get('messagetype')) && isObject(body);
  if (announced || looksWrapped) {
    if (!isObject(body)) throw new UnreadableMessageError('the envelope holds no message');
    return wrapped(byName, body, properties);
  }
  return bare(members, properties);
}

/** As {@link readEnvelope}, with the error as a value. */
export function tryReadEnvelope(content: Buffer, properties: TransportProperties): ReceivedEnvelope | Error {
  try {
    return readEnvelope(content, properties);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function wrapped(
  byName: Map<string, unknown>,
  message: object,
  properties: TransportProperties,
): ReceivedEnvelope {
  const types = byName.get('messagetype');
  const headers = byName.get('headers');
  const read = (name: string): string | null => text(byName.get(name));
  return {
    format: 'masstransit',
    messageId: read('messageid') ?? text(properties.messageId),
    requestId: read('requestid'),
    correlationId: read('correlationid'),
    conversationId: read('conversationid'),
    responseAddress: read('responseaddress'),
    faultAddress: read('faultaddress'),
    expiresAt: instant(read('expirationtime')),
    messageTypes: Array.isArray(types) ? types.filter((type) => typeof type === 'string') : [],
    message,
    headers: isObject(headers) ? (headers as Record<string, unknown>) : {},
  };
}

/**
 * MassTransit's raw serialiser puts what the envelope would hold into headers, spelt `MT-Request-Id`,
 * `MT-RequestId` or `RequestId` from version to version; other clients give AMQP's `type`.
 */
function bare(message: object, properties: TransportProperties): ReceivedEnvelope {
  const headers = properties.headers ?? {};
  const byName = new Map(Object.entries(headers).map(([key, value]) => [headerName(key), text(value)]));
  const read = (name: string): string | null => byName.get(name) ?? null;
  const types = read('messagetype')?.split(';') ?? [text(properties.type)];
  return {
    format: 'raw',
    messageId: text(properties.messageId) ?? read('messageid'),
    requestId: read('requestid'),
    correlationId: text(properties.correlationId),
    conversationId: read('conversationid'),
    responseAddress: read('responseaddress'),
    faultAddress: read('faultaddress'),
    expiresAt: instant(read('expirationtime')),
    messageTypes: types.filter((type): type is string => type !== null && type !== ''),
    message,
    headers,
  };
}

function headerName(key: string): string {
  return key.toLowerCase().replace(/^mt-/, '').replaceAll('-', '');
}

function jsonObject(content: Buffer): Record<string, unknown> {
  const json = readBody(content);
  try {
    const value: unknown = JSON.parse(json);
    if (isObject(value)) return value as Record<string, unknown>;
  } catch (error) {
    // The parser's text quotes the body, which may hold anything.
    if (error instanceof SyntaxError) throw new UnreadableMessageError('the body is not JSON');
    throw error;
  }
  throw new UnreadableMessageError('the body is not a JSON object');
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** .NET writes seven digits of a second. */
function instant(text: string | null): Date | null {
  const at = new Date(text ?? NaN);
  return Number.isNaN(at.getTime()) ? null : at;
}

/**
 * Identifiers and addresses only: bounded, and free of control characters, so that a table and a header can
 * hold them.
 */
function text(value: unknown): string | null {
  return typeof value === 'string' && value.length <= 1_000 && !/\p{Cc}/u.test(value) ? value : null;
}
