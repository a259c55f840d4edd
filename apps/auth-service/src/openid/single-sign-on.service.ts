import { Inject, Injectable } from '@nestjs/common';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import type { SignedInSubject } from './identity-provider.client';
import { IdentityProvider } from './identity-provider.client';
import { formatSignInCookie, readSignInCookie } from './sign-in-cookie';
import type { ResumedSignIn, SignInPurpose } from './sign-ins.repository';
import { SignInsRepository, newSignInTerms, randomSecret } from './sign-ins.repository';
import { WaitingSignIns } from './waiting-sign-ins.service';

/**
 * What the identity provider has the browser post: strings by name, `state` and `code` or `error` among them.
 */
export type Callback = Readonly<Record<string, string>> & { readonly state: string };

/** Whom the provider has signed in, and since when the sign-in has been under way. */
export interface ProvenSignOn extends SignedInSubject {
  /** The database's time when it began. What is revoked afterwards may be what it rests on. */
  evidenceAt: Date;
}

/** Where a browser is sent to sign in, and the cookie it takes along. */
export interface StartedSignIn {
  authorizationUrl: string;
  cookie: string;
}

/** Single sign-on through the configured OpenID provider. */
@Injectable()
export class SingleSignOn {
  constructor(
    @Inject(IdentityProvider) private readonly configuredProvider: IdentityProvider | null,
    private readonly signIns: SignInsRepository,
    private readonly waiting: WaitingSignIns,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  /** @throws {TokenRejected} InvalidRequest when single sign-on is not configured */
  assertConfigured(): void {
    this.provider();
  }

  /**
   * Starts a sign-in. A browser keeps its secret, so that sign-ins in two of its tabs do not spoil each
   * other.
   * @param cookies the Cookie header
   * @throws {TokenRejected} InvalidRequest when single sign-on is not configured
   * @throws {TokenRateExceeded} or {TooMuchWorkError} when too many wait for their users
   * @throws {IdentityProviderUnavailableError}
   */
  async start(cookies: string | undefined, purpose: SignInPurpose): Promise<StartedSignIn> {
    const provider = this.provider();
    const { OPENID_HTTP_ALLOWED: httpAllowed } = this.config;
    await this.waiting.assertRoom();
    const terms = newSignInTerms(provider.maxAgeSeconds);
    // The provider comes first: nothing is stored for a sign-in that cannot begin.
    const authorizationUrl = await provider.authorizationUrl(terms);
    const browserSecret = readSignInCookie(cookies, httpAllowed) ?? randomSecret();
    await this.waiting.store(terms, browserSecret, purpose);
    return { authorizationUrl, cookie: formatSignInCookie(browserSecret, httpAllowed) };
  }

  /**
   * Takes up the sign-in that a callback belongs to; it cannot be taken up again.
   * @throws {TokenRejected} InvalidRequest when there is none for this state and browser
   * @throws {IdentityProviderUnavailableError} when nothing is known of the provider; the sign-in then stays
   * as it is
   */
  async resume(callback: Callback, cookies: string | undefined): Promise<ResumedSignIn> {
    const provider = this.provider();
    const browserSecret = readSignInCookie(cookies, this.config.OPENID_HTTP_ALLOWED);
    if (browserSecret === null) throw noSuchSignIn('no cookie');
    await provider.assertKnown();
    const signIn = await this.signIns.resume(callback.state, browserSecret);
    if (signIn === null) throw noSuchSignIn('state unknown, expired, used, or of another browser');
    return signIn;
  }

  /** Whom the provider has signed in.
   *  @throws {TokenRejected} AuthenticationFailed
   *  @throws {IdentityProviderUnavailableError} */
  async identify(callback: Callback, signIn: ResumedSignIn): Promise<ProvenSignOn> {
    return { ...(await this.provider().identify(callback, signIn)), evidenceAt: signIn.begunAt };
  }

  private provider(): IdentityProvider {
    if (this.configuredProvider !== null) return this.configuredProvider;
    throw new TokenRejected(TokenRejectionReason.InvalidRequest, 'Single sign-on is not configured.');
  }
}

/** One response for all, so that nobody learns which states exist. */
function noSuchSignIn(privateDetail: string): TokenRejected {
  const detail = 'There is no such sign-in under way in this browser. Start again.';
  return new TokenRejected(TokenRejectionReason.InvalidRequest, detail, { privateDetail });
}
