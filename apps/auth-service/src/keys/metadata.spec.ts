import { metadataOf } from './metadata.controller';

describe('the metadata of the issuer', () => {
  it.each([
    ['https://auth.example', 'https://auth.example/auth'],
    ['https://auth.example/', 'https://auth.example/auth'],
    ['https://example.org/auth', 'https://example.org/auth'],
    ['https://example.org/platform', 'https://example.org/platform/auth'],
  ])('of issuer %s has addresses under %s', (issuer, routes) => {
    expect(metadataOf(issuer, 'ES256')).toMatchObject({
      issuer,
      jwks_uri: `${routes}/.well-known/jwks.json`,
      introspection_endpoint: `${routes}/introspect`,
      id_token_signing_alg_values_supported: ['ES256', 'HS256'],
    });
  });

  it.each(['platform', 'urn:platform:auth', 'https://auth.example/?a=1', 'https://'])(
    'is null for the issuer %s, which is not an address',
    (issuer) => {
      expect(metadataOf(issuer, 'ES256')).toBeNull();
    },
  );
});
