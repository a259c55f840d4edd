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

/** The form fields that the browser posts for the identity provider: `state`, and `code` or `error`. */
export type Callback = Readonly<Record<string, string>> & { readonly state: string };

/** The signed-in user, and when the sign-in began. */
export interface ProvenSignOn extends SignedInSubject {
  /**
   * The database's time when the sign-in began. A revocation after this instant may concern the user's
   * authentication at the provider.
   */
  evidenceAt: Date;
}

/** The URL to which the browser is sent to sign in, and its cookie. */
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
   * Starts a sign-in. The browser keeps its existing secret, so that sign-ins in two of its tabs do not
   * interfere.
   * @param cookies the Cookie header
   * @throws {TokenRejected} InvalidRequest when single sign-on is not configured
   * @throws {TokenRateExceeded} when too many sign-ins of the network are waiting
   * @throws {TooMuchWorkError} when too many sign-ins of all networks together are waiting
   * @throws {IdentityProviderUnavailableError}
   */
  async start(cookies: string | undefined, purpose: SignInPurpose): Promise<StartedSignIn> {
    const provider = this.provider();
    const { OPENID_HTTP_ALLOWED: httpAllowed } = this.config;
    await this.waiting.assertRoom();
    const terms = newSignInTerms(provider.maxAgeSeconds);
    // Asks the provider first, so that nothing is stored for a sign-in that cannot start.
    const authorizationUrl = await provider.authorizationUrl(terms);
    const browserSecret = readSignInCookie(cookies, httpAllowed) ?? randomSecret();
    await this.waiting.store(terms, browserSecret, purpose);
    return { authorizationUrl, cookie: formatSignInCookie(browserSecret, httpAllowed) };
  }

  /**
   * Resumes the sign-in of a callback and consumes it.
   * @throws {TokenRejected} InvalidRequest if this browser has no sign-in with this state
   * @throws {IdentityProviderUnavailableError} when the provider's metadata is unavailable; the sign-in is
   * then not consumed
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

  /**
   * Returns the user that the provider has signed in.
   * @throws {TokenRejected} AuthenticationFailed
   * @throws {IdentityProviderUnavailableError}
   */
  async identify(callback: Callback, signIn: ResumedSignIn): Promise<ProvenSignOn> {
    return { ...(await this.provider().identify(callback, signIn)), evidenceAt: signIn.begunAt };
  }

  private provider(): IdentityProvider {
    if (this.configuredProvider !== null) return this.configuredProvider;
    throw new TokenRejected(TokenRejectionReason.InvalidRequest, 'Single sign-on is not configured.');
  }
}

/** All cases get the same response, so that it does not reveal which states exist. */
function noSuchSignIn(privateDetail: string): TokenRejected {
  const detail = 'There is no such sign-in under way in this browser. Start again.';
  return new TokenRejected(TokenRejectionReason.InvalidRequest, detail, { privateDetail });
}
