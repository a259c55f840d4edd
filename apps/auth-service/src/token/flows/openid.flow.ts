import { Body, Headers, Inject, Query, Req, Res, applyDecorators } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiHeaders, ApiOperation, ApiQuery, ApiResponse } from '@platform/open-api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { TokenApplicationsService } from '../../applications/token-applications.service';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { IdentitiesService } from '../../identity/identities.service';
import type { Resolution } from '../../identity/identity';
import { redirect } from '../../openid/application-return';
import { ApplicationReturns } from '../../openid/application-returns.service';
import { signInCookieName } from '../../openid/sign-in-cookie';
import type { ResumedSignIn } from '../../openid/sign-ins.repository';
import { SingleSignOn } from '../../openid/single-sign-on.service';
import type { Callback, ProvenSignOn } from '../../openid/single-sign-on.service';
import { TokenRejected, TokenRejectionReason } from '../../rejections/token-rejection';
import { notResolved } from '../../rejections/unresolved-user';
import type { TokenResponse } from '../token.dto';
import { APPLICATION_KEY, TokenFlowController, TokenGet, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';

const callbackValue = z.string().max(8_192);

/**
 * The callback parameters of OpenID Connect's code flow with response_mode=form_post. Parameters that a
 * provider adds are dropped. `id_token` and `response` belong to other flows; they are passed on so that
 * openid-client refuses a callback that contains one.
 */
export class OpenIdCallbackDto extends createZodDto(
  z
    .object({
      state: callbackValue.min(1),
      code: callbackValue.optional(),
      error: callbackValue.optional(),
      iss: callbackValue.optional(),
      id_token: callbackValue.optional(),
      response: callbackValue.optional(),
    })
    .refine(({ code, error }) => (code === undefined) !== (error === undefined), {
      path: ['code'],
      message: 'either a code or an error is required',
    }),
) {}

/** Maximum length of X-Application-Key, in characters. No application key is longer. */
const MAX_APPLICATION_KEY = 200;

const OUTAGE = 'the database or the identity provider';

const BROWSER_HEADERS = [
  APPLICATION_KEY,
  {
    name: 'Cookie',
    description: `The browser sends \`${signInCookieName(false)}\`, which GET /auth/token/sso/initiate has set. It binds the sign-in to this browser.`,
  },
];

/** Documents the callback that the browser posts for the identity provider. */
function CallbackBody(): MethodDecorator {
  const examples = {
    code: {
      summary: 'Signed in',
      value: { state: 'Vx0…', code: 'SplxlOBeZQQYbYS6WxSbIA', iss: 'https://login.example.org' },
    },
    error: { summary: 'Refused by the provider', value: { state: 'Vx0…', error: 'access_denied' } },
  };
  return applyDecorators(
    ApiHeaders(BROWSER_HEADERS),
    ApiConsumes('application/x-www-form-urlencoded'),
    ApiBody({ type: OpenIdCallbackDto, examples }),
  );
}

/** Documents the query parameters of a sign-in that returns to an application. */
function ReturnQuery(): MethodDecorator {
  const parameters = {
    applicationKey: 'The application that the browser returns to. Only together with `returnUrl`.',
    returnUrl:
      'The address to return to. Must equal one of the addresses that the application has registered.',
    codeChallenge: 'PKCE, S256: base64url of the SHA-256 of a verifier that the application keeps.',
    state: 'Returned to the application unchanged. At most 1,024 characters.',
  };
  return applyDecorators(
    ...Object.entries(parameters).map(([name, description]) =>
      ApiQuery({ name, description, required: false, schema: { type: 'string' } }),
    ),
  );
}

const text = { schema: { type: 'string' }, required: true } as const;
const TO_PROVIDER = {
  status: 302,
  description: 'Redirect to the identity provider.',
  headers: {
    Location: {
      description:
        'The provider’s authorization endpoint, with `state`, `nonce`, PKCE challenge and `max_age`.',
      ...text,
      example: 'https://login.example.org/authorize?response_type=code&…',
    },
    'Set-Cookie': { description: 'Binds the sign-in to the browser.', ...text },
    'Cache-Control': { description: 'The response must not be cached.', ...text, example: 'no-store' },
    'Referrer-Policy': {
      description: 'Keeps `state` and codes in the address out of Referer headers.',
      ...text,
      example: 'no-referrer',
    },
  },
};

const TO_APPLICATION = {
  status: 303,
  description:
    'Redirect to the application’s `returnUrl`, with `code` (for POST /auth/token/code) or `error` (RFC 6749, 4.1.2.1), and the unchanged `state`. ' +
    'Only for sign-ins that started with `returnUrl`.',
  headers: {
    ...TO_PROVIDER.headers,
    Location: {
      description: 'The registered address, with parameters added.',
      ...text,
      example: 'https://app.example.org/signed-in?code=b0xQ…&state=af0ifjsldkj',
    },
    'Set-Cookie': { ...TO_PROVIDER.headers['Set-Cookie'], required: false },
  },
};

/** Single sign-on: redirects to the identity provider, and exchanges its callback for tokens. */
@TokenFlowController()
export class OpenIdFlow {
  constructor(
    private readonly signOn: SingleSignOn,
    private readonly identities: IdentitiesService,
    private readonly applications: TokenApplicationsService,
    private readonly tokens: TokenIssuer,
    private readonly returns: ApplicationReturns,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  /**
   * Starts a sign-in, and stores X-Application-Key with it, because the browser sends the callback without
   * that header. An unknown application is refused only at the callback.
   */
  @TokenGet('sso/initiate', {
    flow: 'openid',
    outage: `${OUTAGE}, or too many sign-ins are waiting for their users`,
    tooSoon:
      'Too many sign-ins from this address are waiting for their users, or the address has exceeded a configured rate limit.',
    success: TO_PROVIDER,
  })
  @ApiOperation({
    operationId: 'startSingleSignOn',
    summary: 'Start a single sign-on',
    description:
      'Open it in the browser of the user. The response sets a cookie and redirects to the identity provider. With `returnUrl` the sign-in ' +
      'returns to an application; without, the callback responds with tokens.\n\n' +
      'Open the address itself: the scripts of this page cannot follow the redirect.',
  })
  @ReturnQuery()
  @ApiHeaders(BROWSER_HEADERS)
  @ApiResponse(TO_APPLICATION)
  @ApiResponse({ status: 204, description: 'Response to HEAD, which does not start a sign-in.' })
  async initiate(
    @Headers('cookie') cookies: string | undefined,
    @Headers('x-application-key') applicationKey: string | undefined,
    @Query() query: Record<string, unknown>,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<void> {
    this.signOn.assertConfigured();
    if (applicationKey !== undefined && applicationKey.length > MAX_APPLICATION_KEY) throw tooLong();
    const target = await this.returns.read(request, query);
    // The header's application is looked up only after a known user has signed in, so that anonymous callers
    // cannot find out which applications exist.
    const purpose = { applicationKey: target?.applicationKey ?? applicationKey ?? null, returnTo: target };
    const { authorizationUrl, cookie } = await this.signOn.start(cookies, purpose);
    void redirect(reply, 302, authorizationUrl).header('set-cookie', cookie);
  }

  @TokenPost('openId', { flow: 'openid', outage: OUTAGE })
  @ApiOperation({
    operationId: 'completeSingleSignOn',
    summary: 'Complete a single sign-on',
    description: `The browser posts the identity provider's callback here. A sign-in expires after ten minutes and accepts one callback, from the
browser that started it. A confidential application must use \`returnUrl\` (else 401, reason 8). The examples get 400, reason 7.`,
  })
  @CallbackBody()
  @ApiResponse(TO_APPLICATION)
  async issue(
    @Body() callback: OpenIdCallbackDto,
    @Headers('x-application-key') applicationKey: string | undefined,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<TokenResponse | undefined> {
    const fields = callback as unknown as Callback;
    const signIn = await this.signOn.resume(fields, request.headers.cookie);
    const target = signIn.returnTo;
    const key = this.applicationKey(signIn, applicationKey);
    if (target !== null) {
      await this.returns.resume(request, target);
      await this.applications.assertPermitted('code', target.applicationKey);
    }
    const external = await this.signOn.identify(fields, signIn);
    const resolution = await this.identities.resolveExternal(external.issuer, external.subject);
    if (target !== null) {
      void redirect(reply, 303, await this.returns.complete(target, external, resolution));
      return undefined;
    }
    return this.issueHere(key, external, resolution);
  }

  /** Obsolete alias of `openId`: Azure AD is an OpenID provider like any other. */
  @TokenPost('user/AzureADLogOn', { flow: 'openid', outage: OUTAGE, successor: '/auth/token/openId' })
  @ApiOperation({
    operationId: 'completeAzureAdSignOn',
    summary: 'Alias of openId',
    description: 'The examples get 400, reason 7.',
    deprecated: true,
  })
  @CallbackBody()
  @ApiResponse(TO_APPLICATION)
  issueObsolete(
    @Body() callback: OpenIdCallbackDto,
    @Headers('x-application-key') applicationKey: string | undefined,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<TokenResponse | undefined> {
    return this.issue(callback, applicationKey, request, reply);
  }

  private async issueHere(
    key: string | undefined,
    { authTime, evidenceAt }: ProvenSignOn,
    resolution: Resolution,
  ): Promise<TokenResponse> {
    // The user is checked first, so that an unknown user learns nothing about applications.
    if (resolution.outcome !== 'resolved') throw notResolved(resolution.outcome);
    const application = await this.applications.findUnproven('openid', key);
    return this.tokens.issue({
      flow: 'openid',
      application,
      evidenceAt,
      resolution,
      personas: { kind: 'login', grantAsInternalPartner: false },
      authTime,
    });
  }

  /**
   * Returns the application named at the start, at the callback, or in the configuration, in this order.
   * @throws {TokenRejected} InvalidRequest when start and callback name different ones
   */
  private applicationKey(signIn: ResumedSignIn, atCallback: string | undefined): string | undefined {
    const atStart = signIn.applicationKey ?? undefined;
    if (atStart !== undefined && atCallback !== undefined && atStart !== atCallback) {
      const detail = 'This sign-in was started by another application.';
      throw new TokenRejected(TokenRejectionReason.InvalidRequest, detail);
    }
    return atStart ?? atCallback ?? this.config.OPENID_DEFAULT_APPLICATION;
  }
}

function tooLong(): TokenRejected {
  const detail = `X-Application-Key has at most ${String(MAX_APPLICATION_KEY)} characters.`;
  return new TokenRejected(TokenRejectionReason.InvalidRequest, detail);
}
