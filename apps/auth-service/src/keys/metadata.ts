/** What validators of any framework read first. Source: OpenID Connect Discovery 1.0 section 3, RFC 8414 section 2. */
export interface Metadata {
  issuer: string;
  jwks_uri: string;
  introspection_endpoint: string;
  introspection_endpoint_auth_methods_supported: string[];
  id_token_signing_alg_values_supported: string[];
  subject_types_supported: string[];
  response_types_supported: string[];
  grant_types_supported: string[];
}

/** The metadata of an issuer; null when its name is not the address that it is reached at.
 *  @param asymmetric the algorithm of the published keys */
export function metadataOf(issuer: string, asymmetric: string): Metadata | null {
  if (!/^https?:\/\/[^?#]+$/.test(issuer) || !URL.canParse(issuer)) return null;
  // An issuer is called by the address of the service, or by that of its routes.
  const routes = `${issuer.replace(/\/+$/, '').replace(/\/auth$/, '')}/auth`;
  return {
    issuer,
    jwks_uri: `${routes}/.well-known/jwks.json`,
    introspection_endpoint: `${routes}/introspect`,
    introspection_endpoint_auth_methods_supported: ['client_secret_basic'],
    id_token_signing_alg_values_supported: [asymmetric, 'HS256'],
    subject_types_supported: ['public'],
    // Tokens come from endpoints of their own, not from those of OAuth 2.
    response_types_supported: [],
    grant_types_supported: [],
  };
}
