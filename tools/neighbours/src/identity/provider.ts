import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { Provider } from 'oidc-provider';
import type { Account, GrantContext, Grant } from 'oidc-provider';
import { findAccountBySubject } from './accounts';
import { MemoryStore } from './memory.store';

/** The one relying party and where the provider lives. */
export interface ProviderSettings {
  issuer: string;
  /** Whether something that ends TLS stands before it and says so in X-Forwarded-Proto. */
  behindProxy: boolean;
  clientId: string;
  clientSecret: string;
  redirectUris: readonly string[];
}

/** An OpenID provider with one confidential client, code flow with PKCE only. Keys, sessions and codes live in memory:
 *  a restart signs everybody out and rotates the keys, which is what its relying parties must survive anyway. */
export function createProvider(settings: ProviderSettings): Provider {
  const provider = new Provider(settings.issuer, {
    adapter: MemoryStore,
    clients: [
      {
        client_id: settings.clientId,
        client_secret: settings.clientSecret,
        redirect_uris: [...settings.redirectUris],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    jwks: { keys: [signingKey()] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    claims: { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email'] },
    scopes: ['openid', 'profile', 'email'],
    responseTypes: ['code'],
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false }, userinfo: { enabled: true } },
    // Everything a relying party needs stands in the ID token.
    conformIdTokenClaims: false,
    interactions: {
      url: (_context: unknown, interaction: { uid: string }) => `/interaction/${interaction.uid}`,
    },
    ttl: {
      AuthorizationCode: 60,
      AccessToken: 600,
      IdToken: 600,
      Interaction: 600,
      Session: 3600,
      Grant: 3600,
    },
    renderError,
    findAccount,
    loadExistingGrant: grantWhatIsAsked,
  });
  provider.proxy = settings.behindProxy;
  return provider;
}

function signingKey(): Record<string, unknown> {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'RS256', use: 'sig' };
}

function findAccount(_context: unknown, subject: string): Account | undefined {
  const account = findAccountBySubject(subject);
  if (account === null) return undefined;
  return {
    accountId: account.subject,
    claims: () => ({
      sub: account.subject,
      name: account.name,
      preferred_username: account.login,
      email: account.email,
    }),
  };
}

function renderError(context: { type: string; body: unknown }, failure: Record<string, unknown>): void {
  context.type = 'application/json';
  context.body = JSON.stringify(failure);
}

/** There is one relying party and it is the platform itself, so nobody is asked for consent. */
async function grantWhatIsAsked(context: GrantContext): Promise<Grant> {
  const { client, session, provider, requestParamScopes } = context.oidc;
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope([...requestParamScopes].join(' '));
  await grant.save();
  return grant;
}
