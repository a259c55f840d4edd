import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import jsonwebtoken from 'jsonwebtoken';
import type { KeySource, VerificationKey } from '../keys/keys';
import { AccessTokenError } from './access-token-error';
import { registeredClaims } from './caller';
import type { RegisteredClaims } from './caller';
import { parseToken } from './parse-token';
import type { ParsedToken, SigningAlgorithm } from './parse-token';

/** How far clocks of issuers and validators may differ. Source: docs/spec-gaps.md. */
export const CLOCK_TOLERANCE_SECONDS = 30;

/** An issuer from before this platform: HS256 only, no `typ` (or the older `JWT`). */
export interface LegacyIssuer {
  issuer: string;
  audience: string;
}

/** Which tokens are accepted. */
interface SignedTokenRules {
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
