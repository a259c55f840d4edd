import { Body, Headers, Inject, Query, Req, Res, applyDecorators } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiHeaders, ApiOperation, ApiQuery, ApiResponse } from '@platform/open-api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { IdentitiesService } from '../../identity/identities.service';
import type { Resolution } from '../../identity/identity';
import { signInCookieName } from '../../openid/sign-in-cookie';
import { redirect } from '../../openid/application-return';
import { ApplicationReturns } from '../../openid/application-returns.service';
import { SingleSignOn } from '../../openid/single-sign-on.service';
import type { Callback, ProvenSignOn } from '../../openid/single-sign-on.service';
import type { ResumedSignIn } from '../../openid/sign-ins.repository';
import { TokenApplicationsService } from '../token-applications.service';
import { APPLICATION_KEY, TokenFlowController, TokenGet, TokenPost } from '../token-flow.decorator';
import { TokenIssuer, notResolved } from '../token-issuer.service';
import { TokenRejected, TokenRejectionReason } from '../../rejections/token-rejection';
import type { TokenResponse } from '../token.dto';

const callbackValue = z.string().max(8_192);

/**
 * The callback parameters of OpenID Connect's code flow with response_mode=form_post. Others that providers
 * add are dropped unread. `id_token` and `response` belong to other flows: they are kept so that
 * openid-client refuses a callback that carries one.
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

/** Longer than the key of any application. */
const MAX_APPLICATION_KEY = 200;

const OUTAGE = 'the database or the identity provider';

const BROWSER_HEADERS = [
  APPLICATION_KEY,
  {
    name: 'Cookie',
    description: `\`${signInCookieName(false)}\`, which GET /auth/token/sso/initiate set: a sign-in is bound to its browser, which sends it by itself.`,
  },
];

/** The callback that the identity provider has the browser post. */
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

/** Parameters of a sign-in that ends at an application. */
function ReturnQuery(): MethodDecorator {
  const parameters = {
    applicationKey: 'The application that the browser goes back to. With `returnUrl` only.',
    returnUrl: 'Where: exactly one of the addresses that the application has registered.',
    codeChallenge: 'PKCE, S256: base64url of the SHA-256 of a verifier that the application keeps.',
    state: 'Comes back unchanged; at most 1,024 characters.',
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
  description: 'To the identity provider.',
  headers: {
    Location: {
      description:
        'Its authorization endpoint, with state, nonce, PKCE challenge and the longest age of the sign-in.',
      ...text,
      example: 'https://login.example.org/authorize?response_type=code&…',
    },
    'Set-Cookie': { description: 'Binds the sign-in to the browser.', ...text },
    'Cache-Control': { description: 'No cache may keep this.', ...text, example: 'no-store' },
    'Referrer-Policy': {
      description: 'The state stays between the two.',
      ...text,
      example: 'no-referrer',
    },
  },
};

const TO_APPLICATION = {
  status: 303,
  description:
    'To the application’s `returnUrl`, with `code` (for POST /auth/token/code) or `error` (RFC 6749, 4.1.2.1), and `state` as it was sent. ' +
    'Only for sign-ins that began with `returnUrl`.',
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

/** Single sign-on: the way to the identity provider, and the way back with its callback for tokens. */
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

  /** An application that names itself here need not do so at the callback, which a browser sends without
   *  headers of ours. Unknown ones are refused there. */
  @TokenGet('sso/initiate', {
    flow: 'openid',
    outage: `${OUTAGE}, or too many sign-ins wait for their users`,
    tooSoon:
      'Too many sign-ins of this address wait for their users, or, where a rate limit is configured, it asks too often.',
    success: TO_PROVIDER,
  })
  @ApiOperation({
    operationId: 'startSingleSignOn',
    summary: 'Start a single sign-on',
    description:
      'To be opened in the browser that signs in: it gets a cookie, and a redirect to the identity provider. With `returnUrl` it ends ' +
      'at an application, else with tokens for the browser.\n\n' +
      'Not to be tried from this page, whose scripts may not follow the redirect: open the address itself.',
  })
  @ReturnQuery()
  @ApiHeaders(BROWSER_HEADERS)
  @ApiResponse(TO_APPLICATION)
  @ApiResponse({ status: 204, description: 'To a HEAD only, which starts nothing.' })
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
    // The header is not looked up before somebody known has signed in: nobody else learns which applications
    // there are.
    const purpose = { applicationKey: target?.applicationKey ?? applicationKey ?? null, returnTo: target };
    const { authorizationUrl, cookie } = await this.signOn.start(cookies, purpose);
    void redirect(reply, 302, authorizationUrl).header('set-cookie', cookie);
  }

  @TokenPost('openId', { flow: 'openid', outage: OUTAGE })
  @ApiOperation({
    operationId: 'completeSingleSignOn',
    summary: 'Complete a single sign-on',
    description: `The identity provider has the browser post its callback here. A sign-in takes ten minutes at most and is good for one
callback, in the browser that began it. A confidential application needs a \`returnUrl\` (else 401, reason 8). Tried here: 400, reason 7.`,
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

  /** Obsolete; Azure AD is an OpenID provider like any other. */
  @TokenPost('user/AzureADLogOn', { flow: 'openid', outage: OUTAGE, successor: '/auth/token/openId' })
  @ApiOperation({
    operationId: 'completeAzureAdSignOn',
    summary: 'Second name of openId',
    description: 'Tried from this page it is refused: 400, reason 7.',
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
    // After the user: who is nobody here learns nothing about applications.
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

function tooLong(): TokenRejected {
  const detail = `X-Application-Key has at most ${String(MAX_APPLICATION_KEY)} characters.`;
  return new TokenRejected(TokenRejectionReason.InvalidRequest, detail);
}
