import { createHmac } from 'node:crypto';

/** The signed fields of POST /auth/token/trust. Source: authentication spec, Token endpoints. */
export interface UnsignedTrustRequest {
  /** ISO 8601 UTC. The service accepts a difference of up to five minutes from its clock. */
  requestTimestampUtc: string;
  applicationKey: string;
  /** Requested persona bits. */
  persona: number;
  userName: string;
  serviceProviderID?: number | null | undefined;
  name?: string | null | undefined;
  userAccountID?: number | null | undefined;
  personID?: number | null | undefined;
}

/** The body of POST /auth/token/trust. */
export interface TrustRequest extends UnsignedTrustRequest {
  authenticationCode: string;
}

/**
 * A field of a trust request cannot be signed unambiguously. The message names the field, never its value.
 */
export class TrustRequestError extends Error {
  override readonly name = 'TrustRequestError';

  constructor(
    readonly field: string,
    problem: string,
  ) {
    super(`${field} ${problem}`);
  }
}

/** First line of the signed text: identifies its format and algorithm. */
const SCHEME = 'TRUST-HMAC-SHA256';

/**
 * Unicode category Cc: C0, DEL and C1. With a line feed inside a value, two different requests could have the
 * same signed text.
 */
const CONTROL_CHARACTER = /\p{Cc}/u;

/** Matches only lone surrogates: with the `u` flag a surrogate pair is one character. */
const LONE_SURROGATE = /\p{Cs}/u;

const FIELDS = [
  'requestTimestampUtc',
  'applicationKey',
  'persona',
  'userName',
  'serviceProviderID',
  'name',
  'userAccountID',
  'personID',
] as const satisfies readonly (keyof UnsignedTrustRequest)[];

/**
 * Returns the text that the authentication code is computed over: nine lines joined by line feeds, without a
 * final one. The first line is the scheme's name, followed by the fields in the order of `FIELDS`, as they
 * are sent. An absent or null field is an empty line.
 * @throws {TrustRequestError} for a value that would make the text ambiguous: one with a control character or
 * a lone surrogate, or an integer outside the safe range
 */
export function trustSignedText(request: UnsignedTrustRequest): string {
  return [SCHEME, ...FIELDS.map((field) => signedLine(field, request[field]))].join('\n');
}

/**
 * Returns the request's `authenticationCode`: HMAC-SHA256 over the signed text, keyed with the UTF-8 bytes of
 * the application's shared secret, in standard padded base64.
 * @throws {TrustRequestError} see `trustSignedText`
 */
export function signTrustRequest(request: UnsignedTrustRequest, secret: string): string {
  return createHmac('sha256', Buffer.from(secret, 'utf8'))
    .update(trustSignedText(request), 'utf8')
    .digest('base64');
}

/**
 * Returns a signed request with the timestamp `now`. Send it only once: the service accepts no code twice.
 * @throws {TrustRequestError} see `trustSignedText`
 */
export function createTrustRequest(
  fields: Omit<UnsignedTrustRequest, 'requestTimestampUtc'>,
  secret: string,
  now: Date,
): TrustRequest {
  const request = { requestTimestampUtc: now.toISOString(), ...fields };
  return { ...request, authenticationCode: signTrustRequest(request, secret) };
}

function signedLine(field: string, value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value))
      throw new TrustRequestError(field, 'must be an integer in the safe range');
    // JSON writes -0 as 0, so it is signed as 0.
    return String(value === 0 ? 0 : value);
  }
  if (CONTROL_CHARACTER.test(value))
    throw new TrustRequestError(field, 'must not contain control characters');
  if (LONE_SURROGATE.test(value)) throw new TrustRequestError(field, 'must be well-formed Unicode');
  return value;
}
