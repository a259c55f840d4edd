import { authorizationCodeGrant, buildAuthorizationUrl, calculatePKCECodeChallenge } from 'openid-client';
import type { Configuration, IDToken, ServerMetadata } from 'openid-client';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import {
  IdentityProviderUnavailableError,
  describeProviderError,
  isProviderUnavailable,
} from './provider-metadata.client';
import type { OpenIdSettings, ProviderMetadata } from './provider-metadata.client';

/**
 * The values a sign-in is bound to. The provider sees `state`, `nonce`, a hash of the verifier and the
 * maximum age.
 */
export interface SignInTerms {
  state: string;
  nonce: string;
  codeVerifier: string;
  /**
   * Maximum time in seconds since the user authenticated. Null: a replica of release 1.0.0 started the
   * sign-in and requested no maximum age.
   */
  maxAgeSeconds: number | null;
}

/** The user that the provider has signed in. Only issuer and subject together identify a user. */
export interface SignedInSubject {
  issuer: string;
  subject: string;
  /** When the user authenticated. Null: no maximum age was requested; see `SignInTerms.maxAgeSeconds`. */
  authTime: Date | null;
}

/** The OpenID provider: builds the sign-in URL and verifies the callback. */
export class IdentityProvider {
  constructor(
    private readonly settings: OpenIdSettings,
    private readonly provider: ProviderMetadata,
  ) {}

  /**
   * Maximum time in seconds since the user authenticated: no longer than a session and its tokens may last.
   */
  get maxAgeSeconds(): number {
    return this.settings.maxAgeSeconds;
  }

  /** Returns the URL where the user signs in. @throws {IdentityProviderUnavailableError} */
  async authorizationUrl({ state, nonce, codeVerifier, maxAgeSeconds }: SignInTerms): Promise<string> {
    const configuration = await this.provider.reachable();
    const url = buildAuthorizationUrl(configuration, {
      redirect_uri: this.settings.redirectUri,
      scope: this.settings.scope,
      response_mode: 'form_post',
      state,
      nonce,
      code_challenge: await calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
    });
    if (maxAgeSeconds !== null) url.searchParams.set('max_age', String(maxAgeSeconds));
    // A provider that does not promise auth_time may ignore max_age too and reuse an old session.
    if (!promisesAuthTime(configuration.serverMetadata())) url.searchParams.set('prompt', 'login');
    return url.href;
  }

  /**
   * Loads the provider's metadata in advance, so that the next step is less likely to fail.
   * @throws {IdentityProviderUnavailableError}
   */
  async assertKnown(): Promise<void> {
    await this.provider.recent();
  }

  /**
   * Redeems the callback's code and checks the ID token: signature, issuer, audience, lifetime, nonce, and
   * that the user authenticated recently enough. The browser can change the requested `max_age` on its way to
   * the provider, so `auth_time` is required.
   * @throws {TokenRejected} AuthenticationFailed when the provider or a check refuses
   * @throws {IdentityProviderUnavailableError}
   */
  async identify(callback: Readonly<Record<string, string>>, terms: SignInTerms): Promise<SignedInSubject> {
    const configuration = await this.provider.recent();
    const claims = await this.redeem(configuration, callback, terms);
    this.provider.rememberKeys(configuration);
    // PostgreSQL text cannot hold U+0000.
    if (claims.sub.includes('\u0000')) throw notIdentified('a subject with U+0000');
    return {
      issuer: claims.iss,
      subject: claims.sub,
      // Capped at the issue time of the ID token, so that an authentication is never in the future.
      authTime:
        claims.auth_time === undefined ? null : new Date(Math.min(claims.auth_time, claims.iat) * 1_000),
    };
  }

  private async redeem(
    configuration: Configuration,
    callback: Readonly<Record<string, string>>,
    { state, nonce, codeVerifier, maxAgeSeconds }: SignInTerms,
  ): Promise<IDToken> {
    // The library takes the callback as a URL. This URL exists in memory only.
    const url = new URL(this.settings.redirectUri);
    url.search = new URLSearchParams(callback).toString();
    try {
      const tokens = await authorizationCodeGrant(configuration, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: codeVerifier,
        idTokenExpected: true,
        // Requires auth_time. Source: OpenID Connect Core 1.0, 3.1.3.7, point 11.
        ...(maxAgeSeconds === null ? {} : { maxAge: maxAgeSeconds }),
      });
      return tokens.claims()!;
    } catch (cause) {
      this.provider.forgetKeys();
      const privateDetail = describeProviderError(cause);
      if (isProviderUnavailable(cause)) throw new IdentityProviderUnavailableError(privateDetail, { cause });
      throw notIdentified(privateDetail, cause);
    }
  }
}

function promisesAuthTime({ claims_supported: claims }: ServerMetadata): boolean {
  return Array.isArray(claims) && claims.includes('auth_time');
}

function notIdentified(privateDetail: string, cause?: unknown): TokenRejected {
  const reason = TokenRejectionReason.AuthenticationFailed;
  return new TokenRejected(reason, 'Authentication failed.', { privateDetail, cause });
}
