import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import jsonwebtoken from 'jsonwebtoken';
import type { KeySource, VerificationKey } from '../keys/keys';
import type { RevocableToken, RevocationCheck } from '../revocations/revocation-index';
import { AccessTokenError } from '../token/access-token-error';
import {
  ACCESS_TOKEN_TYP,
  accessTokenClaims,
  callerFromClaims,
  legacyTokenClaims,
  registeredClaims,
} from '../token/caller';
import type { AccessTokenClaims, Caller, RegisteredClaims } from '../token/caller';
import { parseToken } from '../token/parse-token';
import type { ParsedToken, SigningAlgorithm } from '../token/parse-token';
import { VerifiedTokens } from './verified-tokens';

/** Tolerated difference between the clocks of issuers and validators. Source: docs/spec-gaps.md. */
const CLOCK_TOLERANCE_SECONDS = 30;

/**
 * Maximum lifetime of a token from any issuer. Revocations are kept slightly longer, so that no token
 * outlives its revocation.
 */
const LONGEST_LIFETIME_SECONDS = 366 * 24 * 60 * 60;

/** An issuer that predates this platform. Its tokens use HS256 only and have no `typ`, or the older `JWT`. */
export interface LegacyIssuer {
  issuer: string;
  audience: string;
}

export interface AccessTokenVerifierOptions {
  issuer: string;
  audience: string;
  keys: KeySource;
  revocations: RevocationCheck;
  legacyIssuers?: readonly LegacyIssuer[];
  clock?: Clock;
  /** Number of verified tokens to cache; 0 disables the cache. Default 5,000. */
  rememberedTokens?: number;
}

/** A token with a checked header, issuer and key. Its signature is not verified yet. */
export interface PreparedToken {
  readonly parsed: ParsedToken;
  readonly key: VerificationKey;
  readonly audience: string;
  readonly legacy: boolean;
  /** Generation of the keys before `key` was looked up. */
  readonly generation: number | null;
}

/**
 * Options that limit jsonwebtoken to the signature. All other rules are stricter here and are checked
 * separately.
 */
export const SIGNATURE_ONLY = { ignoreExpiration: true, ignoreNotBefore: true } as const;

interface CachedCaller {
  readonly caller: Caller;
  readonly revocable: RevocableToken;
}

/**
 * Turns an access token into its caller, or refuses it. Checks in this order: strict parsing; issuer, `typ`,
 * algorithm and key; the signature (by jsonwebtoken); audience, times, claims and revocations. Verified
 * tokens are cached by their exact text; expiry, key changes and revocations are still checked on every call.
 */
export class AccessTokenVerifier {
  private readonly legacyIssuers: ReadonlyMap<string, LegacyIssuer>;
  private readonly verified: VerifiedTokens<CachedCaller>;
  private readonly clock: Clock;

  /** @throws {RangeError} when our own issuer is also listed as a legacy issuer */
  constructor(private readonly options: AccessTokenVerifierOptions) {
    this.clock = options.clock ?? SYSTEM_CLOCK;
    this.legacyIssuers = new Map((options.legacyIssuers ?? []).map((legacy) => [legacy.issuer, legacy]));
    if (this.legacyIssuers.has(options.issuer))
      throw new RangeError('our own issuer cannot be a legacy issuer');
    this.verified = new VerifiedTokens(options.rememberedTokens ?? 5_000);
  }

  /**
   * Returns the caller of a token.
   * @throws {AccessTokenError} when the token is refused. No token content causes any other error.
   * @throws {TokenVerificationUnavailableError} when keys or revocations are unavailable
   */
  async verify(token: string): Promise<Caller> {
    const cached = this.recall(token);
    if (cached) return cached;
    const prepared = await this.prepare(token);
    this.checkSignature(prepared);
    return this.complete(prepared);
  }

  /**
   * Returns the caller of a cached token, or null if `verify` must be called. Throws as `verify` does, for
   * example if the token was revoked after it was cached.
   */
  recall(token: string): Caller | null {
    const generation = this.options.keys.generation?.() ?? null;
    if (generation === null) return null;
    const found = this.verified.find(token, generation);
    if (!found) return null;
    const nowMs = this.clock.now().getTime();
    if (nowMs >= found.validUntilMs || nowMs < found.validFromMs) {
      this.verified.delete(token);
      return null;
    }
    this.refuseRevoked(found.value.revocable);
    return found.value.caller;
  }

  /**
   * First step of `verify`: everything before the signature. Used with passport-jwt, which checks the
   * signature itself.
   */
  async prepare(token: string): Promise<PreparedToken> {
    // Read before the key is looked up, so that a token is not cached if its key is removed during
    // verification.
    const generation = this.options.keys.generation?.() ?? null;
    const parsed = parseToken(token);
    const issuer = parsed.payload['iss'];
    if (typeof issuer !== 'string') throw new AccessTokenError('unknown-issuer');
    const { audience, legacy } = this.rulesFor(issuer, parsed);
    const key = await this.options.keys.findKey({ kid: parsed.kid, alg: parsed.alg, issuer });
    if (!key || !this.isBoundTo(key, parsed, issuer)) throw new AccessTokenError('unknown-key');
    if (parsed.signatureLength !== signatureLength(key)) throw new AccessTokenError('bad-signature');
    return { parsed, key, audience, legacy, generation };
  }

  /** @throws {AccessTokenError} `bad-signature` */
  checkSignature({ parsed, key }: PreparedToken): void {
    try {
      jsonwebtoken.verify(parsed.text, key.key, { algorithms: [key.alg], ...SIGNATURE_ONLY });
    } catch (cause) {
      // Key and options are known to be good, so any error, even a TypeError, is caused by the token.
      throw new AccessTokenError('bad-signature', { cause });
    }
  }

  /** Last step of `verify`. Call it only after the signature of `prepared` was verified. */
  complete(prepared: PreparedToken): Caller {
    this.checkClaims(prepared);
    const claims = readClaims(prepared);
    const { jti, iat, personId, userId, sid, sub, client_id: clientId } = claims;
    const revocable = { jti, iat, personId, userId, sid, sub, clientId };
    this.refuseRevoked(revocable);
    const caller = callerFromClaims(prepared.parsed.text, claims);
    this.cache(prepared, claims, { caller, revocable });
    return caller;
  }

  private cache(prepared: PreparedToken, claims: AccessTokenClaims, value: CachedCaller): void {
    const { generation } = prepared;
    if (generation === null || generation !== this.options.keys.generation?.()) return;
    this.verified.store(prepared.parsed.text, {
      value,
      generation,
      validFromMs: validFromSeconds(claims) * 1_000,
      validUntilMs: (claims.exp + CLOCK_TOLERANCE_SECONDS) * 1_000,
    });
  }

  private refuseRevoked(token: RevocableToken): void {
    if (this.options.revocations.isRevoked(token)) throw new AccessTokenError('revoked');
  }

  /** Checks the audience, the times and the claims that every token must have. */
  private checkClaims({ parsed, audience }: PreparedToken): void {
    const read = registeredClaims.safeParse(parsed.payload);
    if (!read.success) throw new AccessTokenError('invalid-claims', { cause: read.error });
    const claims = read.data;
    if (!(Array.isArray(claims.aud) ? claims.aud : [claims.aud]).includes(audience)) {
      throw new AccessTokenError('wrong-audience');
    }
    const nowSeconds = this.clock.now().getTime() / 1_000;
    if (claims.exp <= claims.iat || claims.exp - claims.iat > LONGEST_LIFETIME_SECONDS)
      throw new AccessTokenError('invalid-claims');
    if (nowSeconds >= claims.exp + CLOCK_TOLERANCE_SECONDS) throw new AccessTokenError('expired');
    if (nowSeconds < validFromSeconds(claims)) throw new AccessTokenError('not-yet-valid');
  }

  private rulesFor(issuer: string, { alg, typ }: ParsedToken): { audience: string; legacy: boolean } {
    if (issuer === this.options.issuer) {
      if (typ !== ACCESS_TOKEN_TYP) throw new AccessTokenError('wrong-type');
      return { audience: this.options.audience, legacy: false };
    }
    const legacy = this.legacyIssuers.get(issuer);
    if (!legacy) throw new AccessTokenError('unknown-issuer');
    if (typ !== undefined && typ !== 'JWT') throw new AccessTokenError('wrong-type');
    if (alg !== 'HS256') throw new AccessTokenError('unsupported-header');
    return { audience: legacy.audience, legacy: true };
  }

  /** Defends against a key source that ignores the requested algorithm, key id or issuer. */
  private isBoundTo(key: VerificationKey, { kid, alg }: ParsedToken, issuer: string): boolean {
    return key.alg === alg && key.kid === kid && (key.issuer ?? this.options.issuer) === issuer;
  }
}

function readClaims({ parsed, legacy }: PreparedToken): AccessTokenClaims {
  const read = (legacy ? legacyTokenClaims : accessTokenClaims).safeParse(parsed.payload);
  if (!read.success) throw new AccessTokenError('invalid-claims', { cause: read.error });
  // Authentication always precedes the token. A later auth_time would only make the sign-in look more recent.
  if (read.data.auth_time > read.data.iat + CLOCK_TOLERANCE_SECONDS)
    throw new AccessTokenError('invalid-claims');
  return read.data;
}

/** Start of the token's validity in seconds since 1970, tolerance included. */
function validFromSeconds(claims: Pick<RegisteredClaims, 'iat' | 'nbf'>): number {
  return Math.max(claims.iat, claims.nbf ?? claims.iat) - CLOCK_TOLERANCE_SECONDS;
}

/**
 * Length in bytes of a key's signatures (RFC 7518). A signature of any other length, for example DER-encoded
 * ECDSA, is refused before any cryptography.
 */
function signatureLength({ alg, key }: VerificationKey): number {
  const fixed: Record<Exclude<SigningAlgorithm, 'RS256'>, number> = { HS256: 32, ES256: 64 };
  return alg === 'RS256' ? Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8) : fixed[alg];
}
