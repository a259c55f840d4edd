import type { Clock } from '@platform/time';
import { authServiceKeys } from '../keys/jwks';
import { combineKeys, staticKeys } from '../keys/keys';
import type { KeySource } from '../keys/keys';
import { httpRevocationSource } from '../revocations/http-revocation-source';
import { RevocationFeed } from '../revocations/revocation-feed';
import type { RevocationFeedOptions } from '../revocations/revocation-feed';
import type { RevocationSource } from '../revocations/revocation-index';
import { AccessTokenError, bearerToken } from '../token/access-token-error';
import type { Caller } from '../token/caller';
import { AccessTokenVerifier } from './access-token-verifier';
import type { LegacyIssuer } from './access-token-verifier';

/** Which access tokens a service accepts, and where it reads keys and revocations. */
export interface AccessTokensOptions {
  issuer: string;
  audience: string;
  keys: KeySource;
  revocations: RevocationSource;
  clock?: Clock;
  legacyIssuers?: readonly LegacyIssuer[];
  /** Intervals and limits of the revocation feed. `RevocationFeedOptions` documents the defaults. */
  revocationFeed?: Omit<RevocationFeedOptions, 'source' | 'clock' | 'onOutage'>;
}

/** Validates access tokens in any framework: a token verifier plus the revocation feed that it checks. */
export class AccessTokenValidator {
  readonly verifier: AccessTokenVerifier;
  readonly revocations: RevocationFeed;

  /** @param options `onOutage` is documented at `RevocationFeedOptions` */
  constructor(options: AccessTokensOptions & Pick<RevocationFeedOptions, 'onOutage'>) {
    const { revocations: source, revocationFeed, ...rest } = options;
    const { clock, onOutage } = rest;
    this.revocations = new RevocationFeed({
      source,
      ...revocationFeed,
      ...(clock === undefined ? {} : { clock }),
      ...(onOutage === undefined ? {} : { onOutage }),
    });
    this.verifier = new AccessTokenVerifier({ ...rest, revocations: this.revocations });
  }

  /**
   * Starts polling revocations. Resolves after the first attempt, whether or not it succeeded. Until one
   * attempt succeeds, every token is refused.
   */
  start(): Promise<void> {
    return this.revocations.start();
  }

  stop(): Promise<void> {
    return this.revocations.stop();
  }

  /**
   * Returns the caller of a request.
   * @param authorization value of the `Authorization` header
   * @throws {AccessTokenError} when the header holds no valid token
   * @throws {TokenVerificationUnavailableError} when keys or revocations cannot be read. `accessRefusal` maps
   * both errors to a response.
   */
  async callerOf(authorization: string | undefined): Promise<Caller> {
    const token = bearerToken(authorization);
    if (token === null) throw new AccessTokenError('missing');
    return this.verifier.verify(token);
  }
}

/** Supplies the service's own access tokens. `TokenProvider` of `@platform/auth-client` implements it. */
export interface OwnTokens {
  getToken(): Promise<string>;
  invalidate(token: string): void;
}

export interface AuthServiceTrust {
  authServiceUrl: string;
  issuer: string;
  audience: string;
  /** Keys that auth-service does not publish: HS256 keys and those of legacy issuers. */
  keys?: KeySource;
  legacyIssuers?: readonly LegacyIssuer[];
  /** The tokens with which the service reads revocations. */
  ownTokens: OwnTokens;
  fetch?: typeof globalThis.fetch;
}

/**
 * Returns the options for accepting tokens of one auth-service: the given keys, the keys that it publishes,
 * and its revocations.
 */
export function trustAuthService(trust: AuthServiceTrust): AccessTokensOptions {
  const { authServiceUrl, issuer, audience, keys = staticKeys([]), legacyIssuers = [], ownTokens } = trust;
  const client = { authServiceUrl, ...(trust.fetch === undefined ? {} : { fetch: trust.fetch }) };
  return {
    issuer,
    audience,
    legacyIssuers,
    keys: combineKeys(keys, authServiceKeys(client)),
    revocations: httpRevocationSource({
      ...client,
      bearerToken: () => ownTokens.getToken(),
      onTokenRefused: (token) => {
        ownTokens.invalidate(token);
      },
    }),
  };
}
