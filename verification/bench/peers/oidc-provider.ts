/**
 * The peer of the token benchmarks: oidc-provider with client_credentials and rotating refresh tokens, ES256.
 * It stores clients, grants and tokens in the PostgreSQL of DATABASE_URL, or without that variable in memory.
 */
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';
import { openPostgresAdapter } from './oidc-postgres-adapter.ts';

const RESOURCE = 'urn:platform:api';
const CLIENT = { client_id: 'bench', client_secret: process.env['CLIENT_SECRET']! };
const port = Number(process.env['PORT']);

const jwk = {
  ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
  alg: 'ES256',
  use: 'sig',
};
const client = {
  ...CLIENT,
  id_token_signed_response_alg: 'ES256',
  token_endpoint_auth_method: 'client_secret_post',
  grant_types: ['client_credentials', 'refresh_token', 'authorization_code'],
  redirect_uris: ['https://client.example/callback'],
};
const databaseUrl = process.env['DATABASE_URL'];
const adapter = databaseUrl === undefined ? undefined : await openPostgresAdapter(databaseUrl);
if (adapter !== undefined) await new adapter('Client').upsert(client.client_id, client);

interface RequestContext {
  readonly oidc: { readonly params: { readonly grant_type?: string } };
}

const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys: [jwk] },
  ...(adapter === undefined ? { clients: [client] } : { adapter }),
  scopes: ['openid', 'offline_access', 'api'],
  rotateRefreshToken: true,
  findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => RESOURCE,
      useGrantedResource: () => true,
      getResourceServerInfo: ({ oidc }: RequestContext) => ({
        scope: 'api',
        audience: RESOURCE,
        // oidc-provider does not store JWT access tokens, so a client_credentials request would store
        // nothing.
        accessTokenFormat:
          adapter !== undefined && oidc.params.grant_type === 'client_credentials' ? 'opaque' : 'jwt',
        jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
});

/** Creates a refresh token like the one of a finished sign-in. */
async function makeRefreshToken(): Promise<string> {
  const accountId = 'account-1001';
  const grant = new provider.Grant({ accountId, clientId: CLIENT.client_id });
  grant.addOIDCScope('openid offline_access');
  grant.addResourceScope(RESOURCE, 'api');
  const grantId = await grant.save();
  const client = await provider.Client.find(CLIENT.client_id);
  const token = new provider.RefreshToken({
    accountId,
    client,
    grantId,
    gty: 'authorization_code',
    resource: RESOURCE,
    scope: 'offline_access api',
    authTime: Math.floor(Date.now() / 1_000),
  });
  return token.save();
}

const serve = provider.callback();
createServer((request, response) => {
  if (request.url === '/ready') response.end();
  else if (request.url === '/seed') void makeRefreshToken().then((token) => response.end(token));
  else void serve(request, response);
}).listen(port, '127.0.0.1');
