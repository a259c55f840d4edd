import { isUtf8 } from 'node:buffer';
import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import jsonwebtoken from 'jsonwebtoken';
import type { KeySource, VerificationKey } from '../keys/keys';
import { AccessTokenError } from './access-token-error';
import { registeredClaims } from './caller';
import type { RegisteredClaims } from './caller';

const ALPHABET = /^[A-Za-z0-9_-]+$/;

/**
 * The bytes of unpadded base64url text in its one canonical spelling, else null. Node's own decoder also takes padding,
 * the other alphabet and stray bits in the last character, which would let several texts stand for one token.
 * Source: RFC 7515 section 2, RFC 4648 section 3.5.
 */
export function decodeCanonicalBase64Url(text: string): Buffer | null {
  if (!ALPHABET.test(text)) return null;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}

/** Deeper nesting than any token of ours has. */
const MAX_DEPTH = 32;

/**
 * Reads bytes as one JSON object (RFC 8259): valid UTF-8 without byte order mark, at most 32 levels deep, and no object
 * in it with two members of one name. `JSON.parse` lets the last of two win, another reader takes the first, and a
 * token must not mean two things. Returns null for anything else.
 */
export function parseStrictJsonObject(bytes: Buffer): Record<string, unknown> | null {
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

/** Walks the text once, without recursion. Only its verdict on valid JSON matters: `JSON.parse` refuses the rest.
 *  @throws {SyntaxError} for a string that is not JSON */
function isShallowWithDistinctNames(text: string): boolean {
  // One entry per open bracket: the names seen so far in an object, null for an array.
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

/** Index just after the string that starts at `start`; the end of the text when it never closes. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return Math.min(at + 1, text.length);
}

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

/** How far clocks of issuers and validators may differ. Source: docs/spec-gaps.md. */
export const CLOCK_TOLERANCE_SECONDS = 30;

/** An issuer from before this platform: HS256 only, no `typ` (or the older `JWT`). */
export interface LegacyIssuer {
  issuer: string;
  audience: string;
}

/** Which tokens are accepted. */
export interface SignedTokenRules {
  issuer: string;
  audience: string;
  /** The `typ` of our issuer's tokens, compared exactly, e.g. `at+jwt`. */
  typ: string;
  keys: KeySource;
  legacyIssuers?: readonly LegacyIssuer[];
  clock?: Clock;
}

/** A token whose header, issuer and key are in order and whose signature is yet to be checked. */
export interface PreparedToken {
  readonly parsed: ParsedToken;
  readonly key: VerificationKey;
  readonly audience: string;
  readonly legacy: boolean;
}

/** jsonwebtoken checks the signature; every other rule is stricter here than there and is applied around it. */
export const SIGNATURE_ONLY = { ignoreExpiration: true, ignoreNotBefore: true } as const;

/**
 * Verifies signed tokens of one kind: strict parsing, then issuer, `typ`, algorithm and key, then the signature
 * (jsonwebtoken), then audience, times and the required claims.
 */
export class SignedTokenVerifier {
  private readonly legacyIssuers: ReadonlyMap<string, LegacyIssuer>;
  private readonly clock: Clock;

  constructor(private readonly rules: SignedTokenRules) {
    this.clock = rules.clock ?? SYSTEM_CLOCK;
    this.legacyIssuers = new Map((rules.legacyIssuers ?? []).map((legacy) => [legacy.issuer, legacy]));
    if (this.legacyIssuers.has(rules.issuer))
      throw new RangeError('our own issuer cannot be a legacy issuer');
  }

  /**
   * The verified payload, its registered claims checked; all other claims are still as the token holds them.
   * @throws {AccessTokenError} when the token is refused
   * @throws {TokenVerificationUnavailableError} when the keys are out of reach
   */
  async verify(token: string): Promise<Record<string, unknown> & RegisteredClaims> {
    const prepared = await this.prepare(token);
    this.checkSignature(prepared);
    return { ...prepared.parsed.payload, ...this.checkClaims(prepared) };
  }

  /** Everything before the cryptography. Errors as in `verify`. */
  async prepare(token: string): Promise<PreparedToken> {
    const parsed = parseToken(token);
    const issuer = parsed.payload['iss'];
    if (typeof issuer !== 'string') throw new AccessTokenError('unknown-issuer');
    const { audience, legacy } = this.rulesFor(issuer, parsed);
    const key = await this.rules.keys.findKey({ kid: parsed.kid, alg: parsed.alg, issuer });
    if (!key || !this.isBoundTo(key, parsed, issuer)) throw new AccessTokenError('unknown-key');
    if (parsed.signatureLength !== signatureLength(key)) throw new AccessTokenError('bad-signature');
    return { parsed, key, audience, legacy };
  }

  /** @throws {AccessTokenError} `bad-signature` */
  checkSignature({ parsed, key }: PreparedToken): void {
    try {
      jsonwebtoken.verify(parsed.text, key.key, { algorithms: [key.alg], ...SIGNATURE_ONLY });
    } catch (cause) {
      // Whatever it throws, TypeError included, comes from the token: key and options are known to be good.
      throw new AccessTokenError('bad-signature', { cause });
    }
  }

  /** What is left once the signature is good: audience, times, required claims. @throws {AccessTokenError} */
  checkClaims({ parsed, audience }: PreparedToken): RegisteredClaims {
    const read = registeredClaims.safeParse(parsed.payload);
    if (!read.success) throw new AccessTokenError('invalid-claims', { cause: read.error });
    const claims = read.data;
    if (!(Array.isArray(claims.aud) ? claims.aud : [claims.aud]).includes(audience)) {
      throw new AccessTokenError('wrong-audience');
    }
    const nowSeconds = this.clock.now().getTime() / 1_000;
    if (claims.exp <= claims.iat) throw new AccessTokenError('invalid-claims');
    if (nowSeconds >= claims.exp + CLOCK_TOLERANCE_SECONDS) throw new AccessTokenError('expired');
    if (nowSeconds < validFromSeconds(claims)) throw new AccessTokenError('not-yet-valid');
    return claims;
  }

  private rulesFor(issuer: string, { alg, typ }: ParsedToken): { audience: string; legacy: boolean } {
    if (issuer === this.rules.issuer) {
      if (typ !== this.rules.typ) throw new AccessTokenError('wrong-type');
      return { audience: this.rules.audience, legacy: false };
    }
    const legacy = this.legacyIssuers.get(issuer);
    if (!legacy) throw new AccessTokenError('unknown-issuer');
    if (typ !== undefined && typ !== 'JWT') throw new AccessTokenError('wrong-type');
    if (alg !== 'HS256') throw new AccessTokenError('unsupported-header');
    return { audience: legacy.audience, legacy: true };
  }

  /** Key sources are asked by algorithm and issuer; this makes sure that they listened. */
  private isBoundTo(key: VerificationKey, { kid, alg }: ParsedToken, issuer: string): boolean {
    return key.alg === alg && key.kid === kid && (key.issuer ?? this.rules.issuer) === issuer;
  }
}

/** From when on a token counts, in seconds since 1970, tolerance included. */
export function validFromSeconds(claims: Pick<RegisteredClaims, 'iat' | 'nbf'>): number {
  return Math.max(claims.iat, claims.nbf ?? claims.iat) - CLOCK_TOLERANCE_SECONDS;
}

/** Signature bytes a key makes (RFC 7518): anything else, DER-coded ECDSA for one, is refused before the cryptography. */
function signatureLength({ alg, key }: VerificationKey): number {
  const fixed: Record<Exclude<SigningAlgorithm, 'RS256'>, number> = { HS256: 32, ES256: 64 };
  return alg === 'RS256' ? Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8) : fixed[alg];
}
