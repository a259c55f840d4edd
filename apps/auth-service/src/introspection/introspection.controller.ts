import { Body, Controller, Header, Headers, HttpCode, Post } from '@nestjs/common';
import { AccessTokenError, AccessTokenVerifier, Public, accessProblem } from '@platform/access-tokens';
import { ApiTags } from '@platform/open-api';
import { ProblemException } from '@platform/service-defaults';
import type { Application } from '../applications/application';
import { RefreshSessionsService } from '../token/refresh-sessions.service';
import { TokenApplicationsService } from '../token/token-applications.service';
import { TokenRejected } from '../rejections/token-rejection';
import { TokenSigner } from '../token/token-signer.service';
import {
  INACTIVE,
  IntrospectionDto,
  IntrospectionRequestDto,
  IntrospectionRoute,
  UNPROVEN,
} from './introspection.dto';

/** For validators that would rather ask than check. Source: RFC 7662. Additive to the specification. */
@Public()
@Controller('auth/introspect')
@ApiTags('Identity and keys')
export class IntrospectionController {
  constructor(
    private readonly applications: TokenApplicationsService,
    private readonly verifier: AccessTokenVerifier,
    private readonly signer: TokenSigner,
    private readonly sessions: RefreshSessionsService,
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
    if (application === null) {
      const headers = { 'WWW-Authenticate': 'Basic realm="platform"' };
      throw new ProblemException({ status: 401, detail: UNPROVEN, headers });
    }
    return (await this.accessToken(token)) ?? (await this.refreshToken(token, application)) ?? INACTIVE;
  }

  private async provenApplication(authorization: string | undefined): Promise<Application | null> {
    const credentials = basicCredentials(authorization);
    return credentials && ifNotRejected(() => this.applications.prove(credentials.key, credentials.secret));
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

  private async refreshToken(
    token: string,
    { applicationKey }: Application,
  ): Promise<IntrospectionDto | null> {
    const claims = await ifNotRejected(() => this.signer.readRefreshToken(token));
    if (claims?.client_id !== applicationKey || !(await this.sessions.isUsable(claims.jti))) return null;
    return { ...claims, active: true };
  }
}

async function ifNotRejected<T>(work: () => T | Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TokenRejected) return null;
    throw error;
  }
}

/** The claims of a token that has been verified. */
function claimsOf(token: string): object {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as object;
}

/** The key and the secret in a Basic `Authorization` header, both form-encoded as RFC 6749 section 2.3.1 has it; null for anything else. */
export function basicCredentials(header: string | undefined): { key: string; secret: string } | null {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) return null;
  try {
    const [key, secret] = [text.slice(0, colon), text.slice(colon + 1)].map(formDecoded) as [string, string];
    return { key, secret };
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

function formDecoded(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}
