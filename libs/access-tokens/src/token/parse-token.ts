import { AccessTokenError } from './access-token-error';
import { decodeCanonicalBase64Url } from './base64url';
import { parseStrictJsonObject } from './strict-json-object';

/** The signature algorithms we know. Each key is bound to one of them. Source: authentication spec, What the service does. */
export const SIGNING_ALGORITHMS = ['HS256', 'RS256', 'ES256'] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

/** Longest token accepted, in characters (all ASCII). */
const MAX_TOKEN_LENGTH = 16 * 1024;

/** What a `kid` may look like: it is looked up and logged, so it holds nothing that a path, a query or a log could trip over. */
export const KEY_ID_PATTERN = /^[\w.-]{1,64}$/;

/** A token taken apart; nothing in it is verified yet. */
export interface ParsedToken {
  readonly text: string;
  readonly alg: SigningAlgorithm;
  readonly kid: string | undefined;
  readonly typ: string | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly signatureLength: number;
}

/**
 * Takes a compact JWS (RFC 7515) apart under rules stricter than the libraries': canonical base64url, JSON objects with
 * distinct member names, a known `alg`, a harmless `kid`, no `crit`. Key material in the header (`jku`, `x5u`, `jwk`,
 * `x5c`) is ignored: keys come from configuration only. No cryptography happens here.
 * @throws {AccessTokenError} `too-large`, `malformed` or `unsupported-header`
 */
export function parseToken(text: string): ParsedToken {
  if (text.length > MAX_TOKEN_LENGTH) throw new AccessTokenError('too-large');
  const parts = text.split('.', 4);
  if (parts.length !== 3) throw new AccessTokenError('malformed');
  const [headerBytes, payloadBytes, signature] = parts.map(decodeCanonicalBase64Url);
  if (!headerBytes || !payloadBytes || !signature) throw new AccessTokenError('malformed');
  const header = parseStrictJsonObject(headerBytes);
  const payload = parseStrictJsonObject(payloadBytes);
  if (!header || !payload) throw new AccessTokenError('malformed');
  return { text, ...readHeader(header), payload, signatureLength: signature.length };
}

function readHeader(header: Record<string, unknown>): Pick<ParsedToken, 'alg' | 'kid' | 'typ'> {
  const { alg, kid, typ } = header;
  // We understand no extension, so any `crit` names one that must be refused (RFC 7515 section 4.1.11).
  if (Object.hasOwn(header, 'crit')) throw new AccessTokenError('unsupported-header');
  if (!isSigningAlgorithm(alg)) throw new AccessTokenError('unsupported-header');
  if (kid !== undefined && (typeof kid !== 'string' || !KEY_ID_PATTERN.test(kid))) {
    throw new AccessTokenError('unsupported-header');
  }
  if (typ !== undefined && typeof typ !== 'string') throw new AccessTokenError('unsupported-header');
  return { alg, kid, typ };
}

/** True for the algorithms we accept, spelled exactly so. */
function isSigningAlgorithm(value: unknown): value is SigningAlgorithm {
  return SIGNING_ALGORITHMS.includes(value as SigningAlgorithm);
}
