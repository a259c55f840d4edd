import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import jsonwebtoken from 'jsonwebtoken';
import type { KeySource, VerificationKey } from '../keys/keys';
import type { RevocableToken } from '../revocations/revocation-index';
import { AccessTokenError } from './access-token-error';
import {
  ACCESS_TOKEN_TYP,
  accessTokenClaims,
  callerFromClaims,
  legacyTokenClaims,
  registeredClaims,
} from './caller';
import type { AccessTokenClaims, Caller, RegisteredClaims } from './caller';
import { parseToken } from './parse-token';
import type { ParsedToken, SigningAlgorithm } from './parse-token';
import { VerifiedTokens } from './verified-tokens';

/** How far clocks of issuers and validators may differ. Source: docs/spec-gaps.md. */
const CLOCK_TOLERANCE_SECONDS = 30;

/**
 * The longest life of a token, whoever issued it: revocations are kept a little longer, so that none outlives
 * its revocation.
 */
const LONGEST_LIFETIME_SECONDS = 366 * 24 * 60 * 60;

/** An issuer from before this platform: HS256 only, no `typ` (or the older `JWT`). */
export interface LegacyIssuer {
  issuer: string;
  audience: string;
}

/**
 * Says whether a token was revoked.
 * @throws {TokenVerificationUnavailableError} when that cannot be known now
 */
export interface RevocationCheck {
  isRevoked(token: RevocableToken): boolean;
}

export interface AccessTokenVerifierOptions {
  issuer: string;
  audience: string;
  keys: KeySource;
  revocations: RevocationCheck;
  legacyIssuers?: readonly LegacyIssuer[];
  clock?: Clock;
  /** How many verified tokens to remember; 0 verifies each one anew. Default 5,000. */
  rememberedTokens?: number;
}

/** A token whose header, issuer and key are in order and whose signature is yet to be checked. */
export interface PreparedToken {
  readonly parsed: ParsedToken;
  readonly key: VerificationKey;
  readonly audience: string;
  readonly legacy: boolean;
  /** State of the keys before `key` was looked up. */
  readonly generation: number | null;
}

/**
 * jsonwebtoken checks the signature; every other rule is stricter here than there and is applied around it.
 */
export const SIGNATURE_ONLY = { ignoreExpiration: true, ignoreNotBefore: true } as const;

interface KnownCaller {
  readonly caller: Caller;
  readonly revocable: RevocableToken;
}

/**
 * Turns an access token into its caller, or refuses it: strict parsing, then issuer, `typ`, algorithm and
 * key, then the signature (jsonwebtoken), then audience, times, claims and revocations. Verified tokens are
 * remembered by their exact text, and expiry, key changes and revocations are looked at every time all the
 * same.
 */
export class AccessTokenVerifier {
  private readonly legacyIssuers: ReadonlyMap<string, LegacyIssuer>;
  private readonly known: VerifiedTokens<KnownCaller>;
  private readonly clock: Clock;

  /** @throws {RangeError} when our own issuer is a legacy issuer too */
  constructor(private readonly options: AccessTokenVerifierOptions) {
    this.clock = options.clock ?? SYSTEM_CLOCK;
    this.legacyIssuers = new Map((options.legacyIssuers ?? []).map((legacy) => [legacy.issuer, legacy]));
    if (this.legacyIssuers.has(options.issuer))
      throw new RangeError('our own issuer cannot be a legacy issuer');
    this.known = new VerifiedTokens(options.rememberedTokens ?? 5_000);
  }

  /**
   * The caller whose token this is.
   * @throws {AccessTokenError} with a closed reason when the token is refused; nothing else comes from a
   * token's content
   * @throws {TokenVerificationUnavailableError} when keys or revocations are out of reach
   */
  async verify(token: string): Promise<Caller> {
    const remembered = this.recall(token);
    if (remembered) return remembered;
    const prepared = await this.prepare(token);
    this.checkSignature(prepared);
    return this.complete(prepared);
  }

  /**
   * The caller of a token verified before, or null when it has to go through `verify`. Errors as in `verify`:
   * a token that expired or was revoked in the meantime is refused here.
   */
  recall(token: string): Caller | null {
    const generation = this.options.keys.generation?.() ?? null;
    if (generation === null) return null;
    const found = this.known.find(token, generation);
    if (!found) return null;
    const nowMs = this.clock.now().getTime();
    if (nowMs >= found.validUntilMs || nowMs < found.validFromMs) {
      this.known.forget(token);
      return null;
    }
    this.refuseRevoked(found.value.revocable);
    return found.value.caller;
  }

  /** First third of `verify`, before the signature; for passport-jwt, which checks the signature itself. */
  async prepare(token: string): Promise<PreparedToken> {
    // Read before the key is looked up: a key removed from here on must not leave a remembered token behind.
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
      // Whatever it throws, TypeError included, comes from the token: key and options are known to be good.
      throw new AccessTokenError('bad-signature', { cause });
    }
  }

  /** Last third of `verify`. Call it only after the signature of `prepared` was found good. */
  complete(prepared: PreparedToken): Caller {
    this.checkClaims(prepared);
    const claims = readClaims(prepared);
    const { jti, iat, personId, userId, sid, sub, client_id: clientId } = claims;
    const revocable = { jti, iat, personId, userId, sid, sub, clientId };
    this.refuseRevoked(revocable);
    const caller = callerFromClaims(prepared.parsed.text, claims);
    this.remember(prepared, claims, { caller, revocable });
    return caller;
  }

  private remember(prepared: PreparedToken, claims: AccessTokenClaims, value: KnownCaller): void {
    const { generation } = prepared;
    if (generation === null || generation !== this.options.keys.generation?.()) return;
    this.known.remember(prepared.parsed.text, {
      value,
      generation,
      validFromMs: validFromSeconds(claims) * 1_000,
      validUntilMs: (claims.exp + CLOCK_TOLERANCE_SECONDS) * 1_000,
    });
  }

  private refuseRevoked(token: RevocableToken): void {
    if (this.options.revocations.isRevoked(token)) throw new AccessTokenError('revoked');
  }

  /** Audience, times and the claims that every token has. */
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

  /** Key sources are asked by algorithm and issuer; this makes sure that they listened. */
  private isBoundTo(key: VerificationKey, { kid, alg }: ParsedToken, issuer: string): boolean {
    return key.alg === alg && key.kid === kid && (key.issuer ?? this.options.issuer) === issuer;
  }
}

function readClaims({ parsed, legacy }: PreparedToken): AccessTokenClaims {
  const read = (legacy ? legacyTokenClaims : accessTokenClaims).safeParse(parsed.payload);
  if (!read.success) throw new AccessTokenError('invalid-claims', { cause: read.error });
  // Nobody proved who they are after they had got their token: such a claim would only make a sign-in look
  // younger.
  if (read.data.auth_time > read.data.iat + CLOCK_TOLERANCE_SECONDS)
    throw new AccessTokenError('invalid-claims');
  return read.data;
}

/** From when on a token counts, in seconds since 1970, tolerance included. */
function validFromSeconds(claims: Pick<RegisteredClaims, 'iat' | 'nbf'>): number {
  return Math.max(claims.iat, claims.nbf ?? claims.iat) - CLOCK_TOLERANCE_SECONDS;
}

/**
 * Signature bytes a key makes (RFC 7518): anything else, DER-coded ECDSA for one, is refused before the
 * cryptography.
 */
function signatureLength({ alg, key }: VerificationKey): number {
  const fixed: Record<Exclude<SigningAlgorithm, 'RS256'>, number> = { HS256: 32, ES256: 64 };
  return alg === 'RS256' ? Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8) : fixed[alg];
}
