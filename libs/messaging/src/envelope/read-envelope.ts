import { readBody } from './body-limits';
import { UnreadableMessageError } from './envelope-errors';

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
  /** Null if the sender gave none; a repetition can then not be recognised. */
  readonly messageId: string | null;
  readonly requestId: string | null;
  readonly correlationId: string | null;
  readonly conversationId: string | null;
  readonly responseAddress: string | null;
  readonly faultAddress: string | null;
  /** Time after which the requester no longer waits for a response; null if the sender gave none. */
  readonly expiresAt: Date | null;
  /** The declared types, most specific first; empty if a raw message declares none. */
  readonly messageTypes: readonly string[];
  /** The message itself, not yet checked against a contract. */
  readonly message: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
}

const JSON_TYPE = /^(application|text)\/([\w.-]+\+)?json\s*(;|$)/i;

/**
 * Reads a delivery. Because clients differ in what they write, member names of the envelope match in any
 * case, and only `message` is required.
 * @throws {UnreadableMessageError} if the body is not a JSON object in UTF-8 within the limits of size and
 * depth, or its content type is not JSON
 */
export function readEnvelope(content: Buffer, properties: TransportProperties): ReceivedEnvelope {
  const contentType = boundedText(properties.contentType);
  if (contentType !== null && contentType !== '' && !JSON_TYPE.test(contentType)) {
    throw new UnreadableMessageError('the content type is not JSON');
  }
  const members = jsonObject(content);
  const byName = new Map(Object.entries(members).map(([key, value]) => [key.toLowerCase(), value]));
  const isDeclared = contentType !== null && /vnd\.masstransit/i.test(contentType);
  const body = byName.get('message');
  const hasEnvelopeShape = Array.isArray(byName.get('messagetype')) && isObject(body);
  if (isDeclared || hasEnvelopeShape) {
    if (!isObject(body)) throw new UnreadableMessageError('the envelope holds no message');
    return readWrapped(byName, body, properties);
  }
  return readBare(members, properties);
}

/** Reads a delivery like {@link readEnvelope} but returns the error instead of throwing it. */
export function tryReadEnvelope(content: Buffer, properties: TransportProperties): ReceivedEnvelope | Error {
  try {
    return readEnvelope(content, properties);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function readWrapped(
  byName: Map<string, unknown>,
  message: object,
  properties: TransportProperties,
): ReceivedEnvelope {
  const types = byName.get('messagetype');
  const headers = byName.get('headers');
  const read = (name: string): string | null => boundedText(byName.get(name));
  return {
    format: 'masstransit',
    messageId: read('messageid') ?? boundedText(properties.messageId),
    requestId: read('requestid'),
    correlationId: read('correlationid'),
    conversationId: read('conversationid'),
    responseAddress: read('responseaddress'),
    faultAddress: read('faultaddress'),
    expiresAt: parseTime(read('expirationtime')),
    messageTypes: Array.isArray(types) ? types.filter((type) => typeof type === 'string') : [],
    message,
    headers: isObject(headers) ? (headers as Record<string, unknown>) : {},
  };
}

/**
 * Reads a bare JSON object. MassTransit's raw serialiser writes the envelope's fields as headers, spelt
 * `MT-Request-Id`, `MT-RequestId` or `RequestId` depending on its version. Other clients set AMQP's `type`.
 */
function readBare(message: object, properties: TransportProperties): ReceivedEnvelope {
  const headers = properties.headers ?? {};
  const byName = new Map(
    Object.entries(headers).map(([key, value]) => [headerName(key), boundedText(value)]),
  );
  const read = (name: string): string | null => byName.get(name) ?? null;
  const types = read('messagetype')?.split(';') ?? [boundedText(properties.type)];
  return {
    format: 'raw',
    messageId: boundedText(properties.messageId) ?? read('messageid'),
    requestId: read('requestid'),
    correlationId: boundedText(properties.correlationId),
    conversationId: read('conversationid'),
    responseAddress: read('responseaddress'),
    faultAddress: read('faultaddress'),
    expiresAt: parseTime(read('expirationtime')),
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
    // The parser's message quotes the body, which may contain anything.
    if (error instanceof SyntaxError) throw new UnreadableMessageError('the body is not JSON');
    throw error;
  }
  throw new UnreadableMessageError('the body is not a JSON object');
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses an ISO 8601 time, including .NET's form with seven fractional digits. Null if it is invalid. */
function parseTime(text: string | null): Date | null {
  const at = new Date(text ?? NaN);
  return Number.isNaN(at.getTime()) ? null : at;
}

/**
 * Returns a value that can be an identifier or address, else null: text of at most 1,000 characters without
 * control characters, so that a table and a header can hold it.
 */
function boundedText(value: unknown): string | null {
  return typeof value === 'string' && value.length <= 1_000 && !/\p{Cc}/u.test(value) ? value : null;
}
