import { Controller, Get, Header, Inject, applyDecorators } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { ApiOkResponse, ApiOperation, ApiTags, ProblemResponse } from '@platform/open-api';
import { problems } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { JWKS_HEADERS } from './jwks.dto';

/**
 * The issuer metadata by which token validators configure themselves. Source: OpenID Connect Discovery 1.0
 * section 3, RFC 8414 section 2.
 */
interface Metadata {
  issuer: string;
  jwks_uri: string;
  introspection_endpoint: string;
  introspection_endpoint_auth_methods_supported: string[];
  id_token_signing_alg_values_supported: string[];
  subject_types_supported: string[];
  response_types_supported: string[];
  grant_types_supported: string[];
}

/**
 * Returns the metadata of an issuer; null if its name is not an http(s) address.
 * @param asymmetric the algorithm of the published keys
 */
export function metadataOf(issuer: string, asymmetric: string): Metadata | null {
  if (!/^https?:\/\/[^?#]+$/.test(issuer) || !URL.canParse(issuer)) return null;
  // The issuer's name is either the service's address or that of its routes, which ends in /auth.
  const routes = `${issuer.replace(/\/+$/, '').replace(/\/auth$/, '')}/auth`;
  return {
    issuer,
    jwks_uri: `${routes}/.well-known/jwks.json`,
    introspection_endpoint: `${routes}/introspect`,
    introspection_endpoint_auth_methods_supported: ['client_secret_basic'],
    id_token_signing_alg_values_supported: [asymmetric, 'HS256'],
    subject_types_supported: ['public'],
    // Empty: tokens are issued by this service's own endpoints, not by those of OAuth 2.
    response_types_supported: [],
    grant_types_supported: [],
  };
}

const address = z.string().meta({ format: 'uri' });
const texts = z.array(z.string());

class MetadataDto extends createZodDto(
  z
    .object({
      issuer: z.string(),
      jwks_uri: address,
      introspection_endpoint: address,
      introspection_endpoint_auth_methods_supported: texts,
      id_token_signing_alg_values_supported: texts,
      subject_types_supported: texts,
      response_types_supported: texts,
      grant_types_supported: texts,
    })
    .meta({ id: 'Metadata', description: 'The metadata of the issuer.' }) satisfies z.ZodType<Metadata>,
) {}

const NO_ADDRESS = 'The issuer is called by a name that is no address.';

/** A route that serves the metadata. */
function MetadataRoute(path: string, operationId: string, standard: string): MethodDecorator {
  return applyDecorators(
    Get(path),
    ApiOperation({ operationId, summary: `Get the metadata of the issuer (${standard})` }),
    ApiOkResponse({
      description: 'The metadata.',
      type: MetadataDto.Output,
      examples: {
        es256: { summary: 'With ES256', value: metadataOf('https://auth.platform.example', 'ES256') },
      },
      headers: JWKS_HEADERS,
    }),
    ProblemResponse(404, 'Only if `TOKEN_ISSUER` is not an http(s) address.', {
      name: { summary: 'Not an address', detail: NO_ADDRESS, instance: `/${path}` },
    }),
    Header('Cache-Control', 'public, max-age=30'),
  );
}

const OPENID = 'OpenID Connect Discovery';
const OAUTH = 'RFC 8414';

/**
 * Serves the metadata under the issuer and also under `/auth`, for a gateway that forwards only `/auth`.
 * Additive to the specification.
 */
@Public()
@Controller()
@ApiTags('Identity and keys')
export class MetadataController {
  private readonly metadata: Metadata | null;

  constructor(@Inject(AUTH_CONFIG) config: AuthConfig) {
    this.metadata = metadataOf(config.TOKEN_ISSUER, config.ASYMMETRIC_SIGNING_ALGORITHM);
  }

  @MetadataRoute('.well-known/openid-configuration', 'getOpenIdConfiguration', OPENID)
  openId(): Metadata {
    if (this.metadata === null) throw problems.notFound(NO_ADDRESS);
    return this.metadata;
  }

  @MetadataRoute('auth/.well-known/openid-configuration', 'getOpenIdConfigurationOfRoutes', OPENID)
  openIdOfRoutes(): Metadata {
    return this.openId();
  }

  @MetadataRoute('.well-known/oauth-authorization-server', 'getAuthorizationServer', OAUTH)
  oauth(): Metadata {
    return this.openId();
  }

  @MetadataRoute('auth/.well-known/oauth-authorization-server', 'getAuthorizationServerOfRoutes', OAUTH)
  oauthOfRoutes(): Metadata {
    return this.openId();
  }
}
