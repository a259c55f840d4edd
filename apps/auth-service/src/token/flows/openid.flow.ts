import { Body, Header, Headers, Inject, Redirect, Res } from '@nestjs/common';
import { Documented } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { DEPRECATED_SINCE, successorLink } from '../../deprecation';
import { IdentitiesService } from '../../identity/identities.service';
import { SingleSignOn } from '../../openid/single-sign-on.service';
import type { Callback } from '../../openid/single-sign-on.service';
import type { ResumedSignIn } from '../../openid/sign-ins.repository';
import { AZURE_AD, OPENID, SSO_INITIATE } from '../flow-docs';
import { TokenApplicationsService } from '../token-applications.service';
import { TokenFlowController, TokenGet, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';
import { TokenRejected, TokenRejectionReason } from '../token-response';
import type { TokenResponse } from '../token-response';

const callbackValue = z.string().max(8_192);

/** The callback parameters of OpenID Connect's code flow with response_mode=form_post. Providers add others. */
export class OpenIdCallbackDto extends createZodDto(
  z
    .object({
      state: callbackValue.min(1),
      code: callbackValue.optional(),
      error: callbackValue.optional(),
      iss: callbackValue.optional(),
    })
    .catchall(callbackValue)
    .refine(({ code, error }) => (code === undefined) !== (error === undefined), {
      path: ['code'],
      message: 'either a code or an error is required',
    }),
) {}

/** Single sign-on: the way to the identity provider, and the way back with its callback for tokens. */
@TokenFlowController()
export class OpenIdFlow {
  constructor(
    private readonly signOn: SingleSignOn,
    private readonly identities: IdentitiesService,
    private readonly applications: TokenApplicationsService,
    private readonly tokens: TokenIssuer,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  /** An application that names itself here need not do so at the callback, which a browser sends without headers of ours. */
  @TokenGet('sso/initiate')
  @Documented(SSO_INITIATE)
  @Redirect()
  async initiate(
    @Headers('cookie') cookies: string | undefined,
    @Headers('x-application-key') applicationKey: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<{ url: string }> {
    this.signOn.assertConfigured();
    const application = await this.applications.find('openid', applicationKey);
    const { authorizationUrl, cookie } = await this.signOn.start(
      cookies,
      application?.applicationKey ?? null,
    );
    void reply.headers({
      'set-cookie': cookie,
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
    });
    return { url: authorizationUrl };
  }

  @TokenPost('openId')
  @Documented(OPENID)
  async issue(
    @Body() callback: OpenIdCallbackDto,
    @Headers('cookie') cookies: string | undefined,
    @Headers('x-application-key') applicationKey: string | undefined,
  ): Promise<TokenResponse> {
    const fields = callback as unknown as Callback;
    const signIn = await this.signOn.resume(fields, cookies);
    const application = await this.applications.find('openid', this.applicationKey(signIn, applicationKey));
    const external = await this.signOn.identify(fields, signIn);
    return this.tokens.issue({
      flow: 'openid',
      application,
      resolution: await this.identities.resolveExternal(external.issuer, external.subject),
      personas: { kind: 'login', grantAsInternalPartner: false },
      authTime: external.authTime,
    });
  }

  /** Obsolete; Azure AD is an OpenID provider like any other. */
  @TokenPost('user/AzureADLogOn')
  @Documented(AZURE_AD)
  @Header('Deprecation', DEPRECATED_SINCE)
  @Header('Link', successorLink('/auth/token/openId'))
  issueObsolete(
    @Body() callback: OpenIdCallbackDto,
    @Headers('cookie') cookies: string | undefined,
    @Headers('x-application-key') applicationKey: string | undefined,
  ): Promise<TokenResponse> {
    return this.issue(callback, cookies, applicationKey);
  }

  /** The application that was named at the start, at the end, or in the configuration. */
  private applicationKey(signIn: ResumedSignIn, atCallback: string | undefined): string | undefined {
    const atStart = signIn.applicationKey ?? undefined;
    if (atStart !== undefined && atCallback !== undefined && atStart !== atCallback) {
      const detail = 'This sign-in was started by another application.';
      throw new TokenRejected(TokenRejectionReason.InvalidRequest, detail);
    }
    return atStart ?? atCallback ?? this.config.OPENID_DEFAULT_APPLICATION;
  }
}
