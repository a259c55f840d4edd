import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import type { KeySource } from '../keys/keys';
import type { RevocableToken } from '../revocations/revocation-index';
import { AccessTokenError } from './access-token-error';
import { ACCESS_TOKEN_TYP, accessTokenClaims, callerFromClaims, legacyTokenClaims } from './caller';
import type { AccessTokenClaims, Caller } from './caller';
import { CLOCK_TOLERANCE_SECONDS, SignedTokenVerifier, validFromSeconds } from './signed-token-verifier';
import type { LegacyIssuer, PreparedToken } from './signed-token-verifier';
import { VerifiedTokens } from './verified-tokens';

/** Says whether a token was revoked. @throws {TokenVerificationUnavailableError} when that cannot be known now */
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

/** A token on its way through verification, with the state of the keys when it set out. */
export interface PreparedAccessToken extends PreparedToken {
  readonly generation: number | null;
}

interface KnownCaller {
  readonly caller: Caller;
  readonly revocable: RevocableToken;
}

/**
 * Turns an access token into its caller, or refuses it. Verified tokens are remembered by their exact text, and expiry,
 * key changes and revocations are looked at every time all the same.
 */
export class AccessTokenVerifier {
  private readonly signed: SignedTokenVerifier;
  private readonly known: VerifiedTokens<KnownCaller>;
  private readonly clock: Clock;

  constructor(private readonly options: AccessTokenVerifierOptions) {
    this.clock = options.clock ?? SYSTEM_CLOCK;
    this.signed = new SignedTokenVerifier({ ...options, typ: ACCESS_TOKEN_TYP });
    this.known = new VerifiedTokens(options.rememberedTokens ?? 5_000);
  }

  /**
   * The caller whose token this is.
   * @throws {AccessTokenError} with a closed reason when the token is refused; nothing else comes from a token's content
   * @throws {TokenVerificationUnavailableError} when keys or revocations are out of reach
   */
  async verify(token: string): Promise<Caller> {
    const remembered = this.recall(token);
    if (remembered) return remembered;
    const prepared = await this.prepare(token);
    this.signed.checkSignature(prepared);
    return this.complete(prepared);
  }

  /**
   * The caller of a token verified before, or null when it has to go through `verify`. Errors as in `verify`: a token
   * that expired or was revoked in the meantime is refused here.
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

  /** First half of `verify`, before the signature; for passport-jwt, which checks the signature in between. */
  async prepare(token: string): Promise<PreparedAccessToken> {
    // Read before the key is looked up: a key removed from here on must not leave a remembered token behind.
    const generation = this.options.keys.generation?.() ?? null;
    return { ...(await this.signed.prepare(token)), generation };
  }

  /** Second half of `verify`. Call it only after the signature of `prepared` was found good. */
  complete(prepared: PreparedAccessToken): Caller {
    this.signed.checkClaims(prepared);
    const claims = readClaims(prepared);
    const revocable = { jti: claims.jti, iat: claims.iat, personId: claims.personId, userId: claims.userId };
    this.refuseRevoked(revocable);
    const caller = callerFromClaims(prepared.parsed.text, claims);
    this.remember(prepared, claims, { caller, revocable });
    return caller;
  }

  private remember(prepared: PreparedAccessToken, claims: AccessTokenClaims, value: KnownCaller): void {
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
}

function readClaims({ parsed, legacy }: PreparedAccessToken): AccessTokenClaims {
  const read = (legacy ? legacyTokenClaims : accessTokenClaims).safeParse(parsed.payload);
  if (!read.success) throw new AccessTokenError('invalid-claims', { cause: read.error });
  return read.data;
}
