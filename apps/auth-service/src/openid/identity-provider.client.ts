import { authorizationCodeGrant, buildAuthorizationUrl, calculatePKCECodeChallenge } from 'openid-client';
import type { Configuration, IDToken } from 'openid-client';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import {
  IdentityProviderUnavailableError,
  describeProviderError,
  isProviderUnavailable,
} from './provider-metadata.client';
import type { OpenIdSettings, ProviderMetadata } from './provider-metadata.client';

/** What a sign-in is tied to. The provider sees `state`, `nonce` and a hash of the verifier. */
export interface SignInSecrets {
  state: string;
  nonce: string;
  codeVerifier: string;
}

/** Whom the provider has signed in. Only issuer and subject together identify anybody. */
export interface SignedInSubject {
  issuer: string;
  subject: string;
  /** When they proved who they are, if the provider says so. */
  authTime: Date | null;
}

/** The OpenID provider: where to send users, and what their coming back means. */
export class IdentityProvider {
  constructor(
    private readonly settings: OpenIdSettings,
    private readonly provider: ProviderMetadata,
  ) {}

  /** Where the user signs in. @throws {IdentityProviderUnavailableError} */
  async authorizationUrl({ state, nonce, codeVerifier }: SignInSecrets): Promise<string> {
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
    return url.href;
  }

  /** Waits until the provider's metadata is known, so that what comes next fails less often.
   *  @throws {IdentityProviderUnavailableError} */
  async assertKnown(): Promise<void> {
    await this.provider.recent();
  }

  /** Redeems the callback's code and checks the ID token: signature, issuer, audience, lifetime, nonce.
   *  @throws {TokenRejected} AuthenticationFailed when the provider or a check refuses
   *  @throws {IdentityProviderUnavailableError} */
  async identify(
    callback: Readonly<Record<string, string>>,
    secrets: SignInSecrets,
  ): Promise<SignedInSubject> {
    const configuration = await this.provider.recent();
    const claims = await this.redeem(configuration, callback, secrets);
    this.provider.rememberKeys(configuration);
    // No database can look for it.
    if (claims.sub.includes('\u0000')) throw notIdentified('a subject with U+0000');
    return {
      issuer: claims.iss,
      subject: claims.sub,
      // Not after the ID token itself: nobody has proved anything in the future.
      authTime:
        claims.auth_time === undefined ? null : new Date(Math.min(claims.auth_time, claims.iat) * 1_000),
    };
  }

  private async redeem(
    configuration: Configuration,
    callback: Readonly<Record<string, string>>,
    { state, nonce, codeVerifier }: SignInSecrets,
  ): Promise<IDToken> {
    // The library wants the callback as a URL. It exists in memory only.
    const url = new URL(this.settings.redirectUri);
    url.search = new URLSearchParams(callback).toString();
    try {
      const tokens = await authorizationCodeGrant(configuration, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: codeVerifier,
        idTokenExpected: true,
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

function notIdentified(privateDetail: string, cause?: unknown): TokenRejected {
  const reason = TokenRejectionReason.AuthenticationFailed;
  return new TokenRejected(reason, 'Authentication failed.', { privateDetail, cause });
}
