import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { FORBIDDEN, callerOf } from '@platform/access-tokens';
import type { AuthenticatedRequest } from '@platform/access-tokens';
import { Persona, hasPersona } from '@platform/personas';
import { ProblemException, isConditional, problems } from '@platform/service-defaults';
import { SETTING_NAME_RULE, parseSettingName } from '@platform/setting-names';
import type { SettingName } from '@platform/setting-names';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Preconditions } from '@platform/service-defaults';
import { conditionsOf } from './conditions';
import { instant } from './instant';
import { JsonSyntaxError } from './json-scanner';
import type { SettingKey } from './setting-key';
import { InvalidSettingValueError, parseKeepingValues, settingValueOf } from './setting-value';
import type { JsonText } from './setting-value';
import { writeRequest } from './write-request';
import type { WriteHeaders, WriteRequest } from './write-request';

/** A read of one setting with its conditions. */
export interface SettingRead {
  readonly key: SettingKey;
  readonly conditions: Preconditions;
  /** The instant to read; undefined for the current value. */
  readonly at: Date | undefined;
}

export const BAD_NAME = 'A name in the path is not valid.';
// Any visible ASCII, which allows both the quoted form of draft-ietf-httpapi-idempotency-key-header and bare
// UUIDs.
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Parses the body, with each `settingValue` in its `writes` as its exact text.
 * @throws {ProblemException} 400 if it cannot be parsed
 */
export function jsonBodyOf({ body }: FastifyRequest): unknown {
  try {
    return parseKeepingValues(Buffer.isBuffer(body) ? body : Buffer.alloc(0));
  } catch (cause) {
    if (!(cause instanceof JsonSyntaxError || cause instanceof InvalidSettingValueError)) throw cause;
    const errors = { request: [cause.message] };
    throw new ProblemException({ status: 400, detail: 'The request is not valid.', errors, cause });
  }
}

/**
 * Parses a read of one setting. A plain function, because Nest awaits a pipe for every parameter decorator.
 * @throws {ProblemException} 400 if a name or a condition is malformed
 */
export function readingOf(request: FastifyRequest): SettingRead {
  return { key: keyOf(request), conditions: conditionsOf(request), at: instantOf(request) };
}

/**
 * Parses a write of one setting. A plain function, because Nest awaits a pipe for every parameter decorator.
 * @throws {ProblemException} 400 if a name or a header is malformed
 */
export function writeRequestOf(request: FastifyRequest): WriteRequest {
  return writeRequest(keyOf(request), writeHeadersOf(request), callerOf(request as AuthenticatedRequest));
}

/**
 * Returns the exact text of the body's settingValue.
 * @throws {InvalidSettingValueError | JsonSyntaxError}
 */
export function valueTextOf({ body }: FastifyRequest): JsonText {
  return settingValueOf(Buffer.isBuffer(body) ? body : Buffer.alloc(0));
}

/**
 * Requires the persona InternalPartner on routes that are open to more personas: reads of the past, like the
 * history, and changes of all settings, like the list of all settings.
 * @throws {ProblemException} 403
 */
export function requireInternalPartner(request: FastifyRequest): void {
  const caller = callerOf(request as AuthenticatedRequest);
  if (!hasPersona(caller.personas, Persona.InternalPartner)) throw new ProblemException(FORBIDDEN);
}

/**
 * Parses the headers of a write of many settings. If-Match and If-None-Match are refused, because ignoring
 * them could lose a write.
 * @throws {ProblemException} 400 if one of them is present, or a header is malformed
 */
export function bulkWriteHeadersOf(request: FastifyRequest): WriteHeaders {
  const headers = writeHeadersOf(request);
  if (isConditional(headers.conditions))
    throw problems.badRequest('If-Match and If-None-Match do not apply to a command for many settings.');
  return headers;
}

function writeHeadersOf(request: FastifyRequest): WriteHeaders {
  const idempotencyKey = request.headers['idempotency-key'];
  const isWellFormed = typeof idempotencyKey === 'string' && IDEMPOTENCY_KEY.test(idempotencyKey);
  if (idempotencyKey !== undefined && !isWellFormed)
    throw problems.badRequest('Idempotency-Key must be 1 to 255 visible ASCII characters.');
  return {
    conditions: conditionsOf(request),
    idempotencyKey: isWellFormed ? idempotencyKey : null,
    requestId: request.id,
  };
}

function instantOf(request: FastifyRequest): Date | undefined {
  const { at } = request.query as Record<string, unknown>;
  if (at === undefined) return undefined;
  requireInternalPartner(request);
  const parsed = instant.safeParse(at);
  if (parsed.success) return parsed.data;
  throw problems.badRequest('The request is not valid.', {
    at: parsed.error.issues.map(({ message }) => message),
  });
}

/**
 * Returns the setting in the path.
 * @throws {ProblemException} 400 if a name is not valid
 */
export function keyOf(request: FastifyRequest): SettingKey {
  return { subsystem: subsystemOf(request), setting: nameOf(request, 'settingName') };
}

/**
 * Returns the subsystem in the path.
 * @throws {ProblemException} 400 if the name is not valid
 */
export function subsystemOf(request: FastifyRequest): SettingName {
  return nameOf(request, 'subsystemName');
}

function nameOf(request: FastifyRequest, parameter: string): SettingName {
  const name = parseSettingName((request.params as Record<string, string | undefined>)[parameter] ?? '');
  if (name !== null) return name;
  throw problems.badRequest(BAD_NAME, { [parameter]: [SETTING_NAME_RULE] });
}

/**
 * Keeps JSON bodies as the bytes that were sent, because a parsed value cannot be stored exactly as it was
 * written.
 */
export function keepJsonBodiesRaw(app: NestFastifyApplication): void {
  const fastify: FastifyInstance = app.getHttpAdapter().getInstance();
  fastify.removeContentTypeParser('application/json');
  fastify.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (isPlainUtf8(request)) done(null, body);
    else done(problems.unsupportedMediaType('The body must be uncompressed UTF-8.'));
  });
}

function isPlainUtf8({ headers }: FastifyRequest): boolean {
  const coding = headers['content-encoding']?.trim() ?? 'identity';
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(headers['content-type'] ?? '')?.[1] ?? 'utf-8';
  return /^identity$/i.test(coding) && /^(utf-?8|us-ascii)$/i.test(charset);
}
