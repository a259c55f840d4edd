import { createHmac } from 'node:crypto';

/** The signed fields of POST /auth/token/trust. Source: authentication spec, Token endpoints. */
export interface UnsignedTrustRequest {
  /** ISO 8601 UTC; the service accepts five minutes either way. */
  requestTimestampUtc: string;
  applicationKey: string;
  /** Persona bits asked for. */
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

/** A field of a trust request that cannot be signed unambiguously. Names the field, never its value. */
export class TrustRequestError extends Error {
  override readonly name = 'TrustRequestError';

  constructor(
    readonly field: string,
    problem: string,
  ) {
    super(`${field} ${problem}`);
  }
}

/** First line of the signed text: names its composition and algorithm. */
const SCHEME = 'TRUST-HMAC-SHA256';

/** Cc of Unicode: C0, DEL and C1. A line feed inside a value would make two requests sign alike. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/** With the u flag a surrogate pair is one character, so this matches lone halves only. */
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
 * The text that a trust request's code is computed over: nine lines joined by line feeds, none at the end; the scheme's
 * name, then the fields in the order of `FIELDS`, as they are sent. An absent or null field is an empty line.
 * @throws {TrustRequestError} for a value with a control character or a lone surrogate, or an integer outside the safe
 *   range: such a text would not be unambiguous
 */
export function trustSignedText(request: UnsignedTrustRequest): string {
  return [SCHEME, ...FIELDS.map((field) => signedLine(field, request[field]))].join('\n');
}

/**
 * The request's `authenticationCode`: HMAC-SHA256 over the signed text, keyed with the UTF-8 bytes of the
 * application's shared secret, in standard padded base64.
 * @throws {TrustRequestError} as `trustSignedText` does
 */
export function signTrustRequest(request: UnsignedTrustRequest, secret: string): string {
  return createHmac('sha256', Buffer.from(secret, 'utf8'))
    .update(trustSignedText(request), 'utf8')
    .digest('base64');
}

/**
 * A signed request of this moment, ready to be sent once: the service accepts no code twice.
 * @throws {TrustRequestError} as `trustSignedText` does
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
    // -0 would be sent as 0 and must be signed so.
    return String(value === 0 ? 0 : value);
  }
  if (CONTROL_CHARACTER.test(value))
    throw new TrustRequestError(field, 'must not contain control characters');
  if (LONE_SURROGATE.test(value)) throw new TrustRequestError(field, 'must be well-formed Unicode');
  return value;
}
