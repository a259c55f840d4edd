import { Body, Controller, Header, Headers, HttpCode, Post, UseGuards } from '@nestjs/common';
import { AccessTokenError, AccessTokenVerifier, Public, accessProblem } from '@platform/access-tokens';
import { ApiTags } from '@platform/open-api';
import type { Application } from '../applications/application';
import { TokenApplicationsService } from '../applications/token-applications.service';
import { noteInAttempt } from '../audit/token-attempt';
import { AddressRateGuard } from '../rate-limits/rate-limits.service';
import { TokenRejected } from '../rejections/token-rejection';
import { PresentedRefreshTokens, renewalOf } from '../token/presented-refresh-tokens.service';
import { RefreshSessionsService } from '../token/refresh-sessions.service';
import { TokenIssuer } from '../token/token-issuer.service';
import { INACTIVE, IntrospectionDto, IntrospectionRequestDto, IntrospectionRoute } from './introspection.dto';
import { UnprovenApplication } from './unproven-application';

/**
 * Token introspection, for services that do not validate tokens themselves. Source: RFC 7662. An addition to
 * the specification.
 */
@Public()
@Controller('auth/introspect')
@UseGuards(AddressRateGuard)
@ApiTags('Identity and keys')
export class IntrospectionController {
  constructor(
    private readonly applications: TokenApplicationsService,
    private readonly verifier: AccessTokenVerifier,
    private readonly refreshTokens: PresentedRefreshTokens,
    private readonly sessions: RefreshSessionsService,
    private readonly tokens: TokenIssuer,
  ) {}

  @Post()
  @IntrospectionRoute()
  @Header('Cache-Control', 'no-store')
  @HttpCode(200)
  async introspect(
    @Headers('authorization') authorization: string | undefined,
    @Body() { token }: IntrospectionRequestDto,
  ): Promise<IntrospectionDto> {
    const application = await this.provenApplication(authorization);
    return (await this.accessToken(token)) ?? (await this.refreshToken(token, application)) ?? INACTIVE;
  }

  private async provenApplication(authorization: string | undefined): Promise<Application> {
    const credentials = basicCredentials(authorization);
    if (credentials === null) throw new UnprovenApplication('no readable credentials');
    noteInAttempt({ applicationKey: credentials.key });
    try {
      return await this.applications.prove(credentials.key, credentials.secret);
    } catch (error) {
      if (error instanceof TokenRejected) throw new UnprovenApplication(error.privateDetail ?? 'not proven');
      throw error;
    }
  }

  private async accessToken(token: string): Promise<IntrospectionDto | null> {
    try {
      await this.verifier.verify(token);
    } catch (error) {
      if (error instanceof AccessTokenError) return null;
      throw accessProblem(error);
    }
    return { ...claimsOf(token), active: true, token_type: 'Bearer' };
  }

  /**
   * Returns the claims of this application's refresh token if POST /auth/token/refresh would currently accept
   * it.
   */
  private async refreshToken(
    token: string,
    { applicationKey }: Application,
  ): Promise<IntrospectionDto | null> {
    try {
      const claims = this.refreshTokens.read(token);
      if (claims.client_id !== applicationKey) return null;
      const presented = await this.refreshTokens.find(claims);
      this.sessions.assertUsable(presented.session);
      await this.tokens.assertRefreshable(renewalOf(presented));
      return { ...claims, active: true };
    } catch (error) {
      if (error instanceof TokenRejected) return null;
      throw error;
    }
  }
}

/** Returns the claims of a verified token. */
function claimsOf(token: string): object {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as object;
}

/**
 * Returns the key and the secret of a Basic `Authorization` header. Both are form-encoded, as RFC 6749
 * section 2.3.1 requires. Returns null for anything else.
 */
export function basicCredentials(header: string | undefined): { key: string; secret: string } | null {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) return null;
  try {
    const [key, secret] = [text.slice(0, colon), text.slice(colon + 1)].map(formDecoded) as [string, string];
    return FORBIDDEN_IN_KEY.test(key) ? null : { key, secret };
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

/** Characters that no application key contains. */
const FORBIDDEN_IN_KEY = /[\p{Cc}\p{Cs}]/u;

function formDecoded(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}
