import { isDeepStrictEqual } from 'node:util';

/** A response, with its body as text and, if it is JSON, parsed (undefined otherwise). */
export interface WalkResponse {
  status: number;
  headers: Headers;
  text: string;
  json: unknown;
}

/** A response that is not as the tour expects. */
export class Difference extends Error {
  readonly what: string;
  readonly expected: string;
  readonly actual: string;

  constructor(what: string, expected: unknown, actual: unknown, options?: ErrorOptions) {
    super(`${what} differs`, options);
    this.what = what;
    this.expected = typeof expected === 'string' ? expected : JSON.stringify(expected);
    this.actual = typeof actual === 'string' ? actual : (JSON.stringify(actual) ?? 'nothing');
  }
}

/** @throws {Difference} unless both are deeply the same */
export function same(what: string, actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) throw new Difference(what, expected, actual);
}

/** @throws {Difference} unless `condition` is true; `expected` describes it in words */
export function holds(what: string, condition: boolean, expected: string, actual: unknown): void {
  if (!condition) throw new Difference(what, expected, actual);
}

/** Claims of an access token that the tour reads. */
export interface Claims {
  jti: string;
  sid: string;
  iat: number;
  exp: number;
  personas: number;
  personId?: number;
  userId?: number;
  facilities?: number[];
  groups?: string[];
}

/**
 * Reads a token's claims without checking its signature, which is the services' task.
 * @throws {Difference} if it is no JWT
 */
export function readClaims(token: string): Claims {
  const [, payload] = token.split('.');
  if (payload === undefined) throw new Difference('the access token', 'a JWT', token);
  return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as Claims;
}

interface TokenResponse {
  accessToken: string | null;
  refreshToken: string | null;
  rejectionReason: number;
  rejectionDetails: string | null;
  wasSuccessful: boolean;
}

/** Returns the tokens of a successful response. @throws {Difference} if the response is anything else */
export function grantedTokens(response: WalkResponse): { accessToken: string; refreshToken: string | null } {
  const body = response.json as TokenResponse;
  same('wasSuccessful', body.wasSuccessful, true);
  same('rejectionReason', body.rejectionReason, 0);
  if (typeof body.accessToken !== 'string')
    throw new Difference('accessToken', 'a token', String(body.accessToken));
  return { accessToken: body.accessToken, refreshToken: body.refreshToken };
}

/** @throws {Difference} unless the response is a refusal with this reason and without a token */
export function refusedWith(response: WalkResponse, rejectionReason: number): void {
  const body = response.json as TokenResponse;
  same('rejectionReason', body.rejectionReason, rejectionReason);
  same('wasSuccessful', body.wasSuccessful, false);
  same('accessToken', body.accessToken, null);
}
