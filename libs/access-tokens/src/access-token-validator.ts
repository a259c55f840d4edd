import type { Clock } from '@platform/time';
import { authServiceKeys } from './keys/jwks';
import { combineKeys, staticKeys } from './keys/keys';
import type { KeySource } from './keys/keys';
import { httpRevocationSource } from './revocations/http-revocation-source';
import { RevocationFeed } from './revocations/revocation-feed';
import type { RevocationFeedOptions } from './revocations/revocation-feed';
import type { RevocationSource } from './revocations/revocation-index';
import { AccessTokenError, bearerToken } from './token/access-token-error';
import { AccessTokenVerifier } from './token/access-token-verifier';
import type { LegacyIssuer } from './token/access-token-verifier';
import type { Caller } from './token/caller';

/** What a service says about the tokens it accepts. */
export interface AccessTokensOptions {
  issuer: string;
  audience: string;
  keys: KeySource;
  revocations: RevocationSource;
  clock?: Clock;
  legacyIssuers?: readonly LegacyIssuer[];
  /** Intervals and limits of the revocation feed; see their defaults there. */
  revocationFeed?: Omit<RevocationFeedOptions, 'source' | 'clock' | 'onOutage'>;
}

/** Validates tokens in an application of whatever framework: a verifier with the revocations it looks at. */
export class AccessTokenValidator {
  readonly verifier: AccessTokenVerifier;
  readonly revocations: RevocationFeed;

  /** @param onOutage see `RevocationFeedOptions` */
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
   * Reads the revocations and keeps them up to date from now on. Resolves after the first attempt, whether or
   * not it succeeded: until one does, no token is accepted.
   */
  start(): Promise<void> {
    return this.revocations.start();
  }

  stop(): Promise<void> {
    return this.revocations.stop();
  }

  /**
   * Who sent a request.
   * @param authorization its header
   * @throws {AccessTokenError} when there is no good token
   * @throws {TokenVerificationUnavailableError} when keys or revocations are out of reach; `accessRefusal`
   * says how to respond to both
   */
  async callerOf(authorization: string | undefined): Promise<Caller> {
    const token = bearerToken(authorization);
    if (token === null) throw new AccessTokenError('missing');
    return this.verifier.verify(token);
  }
}

/** Where a service gets tokens of its own; `TokenProvider` of the client library is one. */
export interface OwnTokens {
  getToken(): Promise<string>;
  invalidate(token: string): void;
}

export interface AuthServiceTrust {
  authServiceUrl: string;
  issuer: string;
  audience: string;
  /** The keys that auth-service does not publish: those of HS256, and of legacy issuers. */
  keys?: KeySource;
  legacyIssuers?: readonly LegacyIssuer[];
  /** With these the revocations are read. */
  ownTokens: OwnTokens;
  fetch?: typeof globalThis.fetch;
}

/**
 * The options of a service that accepts the tokens of an auth-service: its keys, published or given, and its
 * revocations.
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
