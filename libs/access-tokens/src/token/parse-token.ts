import { isUtf8 } from 'node:buffer';
import { AccessTokenError } from './access-token-error';

const ALPHABET = /^[A-Za-z0-9_-]+$/;

/**
 * Decodes unpadded base64url in its canonical spelling, else returns null. Node's decoder also accepts
 * padding, the other base64 alphabet and stray bits in the last character, so that several texts would
 * represent one token. Source: RFC 7515 section 2, RFC 4648 section 3.5.
 */
function decodeCanonicalBase64Url(text: string): Buffer | null {
  if (!ALPHABET.test(text)) return null;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}

/** Nesting limit. No token of ours is this deep. */
const MAX_DEPTH = 32;

/**
 * Parses one JSON object (RFC 8259): valid UTF-8 without byte order mark, at most 32 levels deep, without
 * duplicate member names at any level. `JSON.parse` would keep the last duplicate and another parser the
 * first, so one token could mean two things. Returns null for anything else.
 */
function parseStrictJsonObject(bytes: Buffer): Record<string, unknown> | null {
  if (!isUtf8(bytes)) return null;
  const text = bytes.toString('utf8');
  try {
    if (!isShallowWithDistinctNames(text)) return null;
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Scans the text once, without recursion, for excessive depth and duplicate names. The result matters only
 * for valid JSON; `JSON.parse` rejects the rest.
 * @throws {SyntaxError} for a malformed string
 */
function isShallowWithDistinctNames(text: string): boolean {
  // One entry per open bracket: the names seen so far for an object, null for an array.
  const open: (Set<string> | null)[] = [];
  let at = 0;
  let expectsName = false;
  while (at < text.length) {
    const char = text[at];
    if (char === '"') {
      const end = endOfString(text, at);
      const names = open.at(-1);
      if (expectsName && names) {
        const name = JSON.parse(text.slice(at, end)) as string;
        if (names.has(name)) return false;
        names.add(name);
        expectsName = false;
      }
      at = end;
      continue;
    }
    if (char === '{' || char === '[') {
      if (open.length === MAX_DEPTH) return false;
      open.push(char === '{' ? new Set() : null);
      expectsName = char === '{';
    } else if (char === '}' || char === ']') {
      open.pop();
      expectsName = false;
    } else if (char === ',') {
      expectsName = open.at(-1) instanceof Set;
    }
    at += 1;
  }
  return true;
}

/**
 * Returns the index just after the string that starts at `start`, or the text's length if the string is not
 * closed.
 */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return Math.min(at + 1, text.length);
}

/**
 * The supported signature algorithms. Each key is bound to one of them. Source: authentication spec, What the
 * service does.
 */
export const SIGNING_ALGORITHMS = ['HS256', 'RS256', 'ES256'] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

/** Longest token accepted, in characters (all ASCII). */
const MAX_TOKEN_LENGTH = 16 * 1024;

/**
 * Format of a `kid`. Key ids are looked up and logged, so characters with a meaning in paths, queries or logs
 * are excluded.
 */
export const KEY_ID_PATTERN = /^[\w.-]{1,64}$/;

/** A parsed token. Nothing in it is verified yet. */
export interface ParsedToken {
  readonly text: string;
  readonly alg: SigningAlgorithm;
  readonly kid: string | undefined;
  readonly typ: string | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly signatureLength: number;
}

/**
 * Parses a compact JWS (RFC 7515) under rules stricter than those of libraries: canonical base64url, JSON
 * objects with unique member names, a known `alg`, a well-formed `kid`, no `crit`. Ignores key material in
 * the header (`jku`, `x5u`, `jwk`, `x5c`), because keys come from configuration only. Performs no
 * cryptography.
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
  // We support no extension, so a token with `crit` must be refused (RFC 7515 section 4.1.11).
  if (Object.hasOwn(header, 'crit')) throw new AccessTokenError('unsupported-header');
  if (!isSigningAlgorithm(alg)) throw new AccessTokenError('unsupported-header');
  if (kid !== undefined && (typeof kid !== 'string' || !KEY_ID_PATTERN.test(kid))) {
    throw new AccessTokenError('unsupported-header');
  }
  if (typ !== undefined && typeof typ !== 'string') throw new AccessTokenError('unsupported-header');
  return { alg, kid, typ };
}

/** Returns true for a supported algorithm in its exact spelling. */
function isSigningAlgorithm(value: unknown): value is SigningAlgorithm {
  return SIGNING_ALGORITHMS.includes(value as SigningAlgorithm);
}
