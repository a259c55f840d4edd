import { generateKeyPairSync, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { flag } from '@platform/service-defaults';
import { SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Provider } from 'oidc-provider';
import type { Account, Grant, GrantContext } from 'oidc-provider';
import { z } from 'zod';
import { createNeighbourServer, neighbourConfigShape, portVariable } from '../neighbour/neighbour';
import type { Neighbour } from '../neighbour/neighbour';

/** A person who can sign in at the identity provider. */
interface ExternalAccount {
  /** Stable identifier within this provider; the platform identifies a person by (issuer, subject). */
  subject: string;
  login: string;
  name: string;
  email: string;
}

/**
 * Three people whom the platform knows, and one whom it does not (nora.nobody). All have the password
 * USER_PASSWORD.
 */
const EXTERNAL_ACCOUNTS: readonly ExternalAccount[] = [
  { subject: 'external-ivy', login: 'ivy.internal', name: 'Ivy Internal', email: 'ivy@example.test' },
  { subject: 'external-carl', login: 'carl.customer', name: 'Carl Customer', email: 'carl@example.test' },
  { subject: 'external-dora', login: 'dora.disabled', name: 'Dora Disabled', email: 'dora@example.test' },
  { subject: 'external-nora', login: 'nora.nobody', name: 'Nora Nobody', email: 'nora@example.test' },
];

/** Returns the account with this login, ignoring case. */
function findAccountByLogin(login: string): ExternalAccount | null {
  return EXTERNAL_ACCOUNTS.find((account) => account.login === login.trim().toLowerCase()) ?? null;
}

function findAccountBySubject(subject: string): ExternalAccount | null {
  return EXTERNAL_ACCOUNTS.find((account) => account.subject === subject) ?? null;
}

/** Settings of the provider and of its only relying party. */
interface ProviderSettings {
  issuer: string;
  /** Whether a proxy in front of the provider terminates TLS and sends X-Forwarded-Proto. */
  behindProxy: boolean;
  clientId: string;
  clientSecret: string;
  redirectUris: readonly string[];
  /** Whether the metadata lists `auth_time` among the claims. */
  authTimeAnnounced: boolean;
}

/**
 * Creates an OpenID provider with one confidential client and one flow, code with PKCE. Keys, sessions and
 * codes are in memory only, which the package warns of at its start: a restart signs all users out and
 * rotates the keys, and relying parties must survive that anyway.
 */
function createProvider(settings: ProviderSettings): Provider {
  const provider = new Provider(settings.issuer, {
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
    // Also puts the claims of the scopes into the ID token, where the relying party reads them.
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
    loadExistingGrant: grantRequestedScopes,
  });
  provider.proxy = settings.behindProxy;
  if (!settings.authTimeAnnounced) concealAuthTime(provider);
  return provider;
}

/** Removes `auth_time` from the metadata, like a provider that supports the claim without announcing it. */
function concealAuthTime(provider: Provider): void {
  provider.use(async (context, next) => {
    await next();
    if (context.path !== '/.well-known/openid-configuration') return;
    const metadata = context.body as { claims_supported: string[] };
    context.body = {
      ...metadata,
      claims_supported: metadata.claims_supported.filter((claim) => claim !== 'auth_time'),
    };
  });
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

/** Grants the requested scopes without asking for consent: the platform itself is the only relying party. */
async function grantRequestedScopes(context: GrantContext): Promise<Grant> {
  const { client, session, provider, requestParamScopes } = context.oidc;
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope([...requestParamScopes].join(' '));
  await grant.save();
  return grant;
}

/**
 * Variables of the identity provider. ISSUER is the URL at which callers reach it, by default its own
 * address. With https, a proxy in front of it terminates TLS and sends X-Forwarded-Proto.
 */
export const identityProviderConfig = z.object({
  ...neighbourConfigShape,
  PORT: portVariable.default(3014),
  ISSUER: z.url({ protocol: /^https?$/ }).optional(),
  CLIENT_ID: z.string().min(1).default('auth-service'),
  CLIENT_SECRET: z.string().min(16),
  REDIRECT_URIS: z
    .string()
    .default('http://127.0.0.1:3001/auth/token/openId,http://127.0.0.1:3001/auth/token/user/AzureADLogOn')
    .transform((list) => list.split(',').map((uri) => uri.trim()))
    .pipe(z.array(z.url()).min(1)),
  USER_PASSWORD: z.string().min(1),
  /** Whether the metadata lists `auth_time` in `claims_supported`. */
  AUTH_TIME_ANNOUNCED: flag().default(true),
  /** Seconds by which each sign-in is backdated, to test how relying parties treat an old browser session. */
  SIGN_IN_AGE_SECONDS: z.coerce.number().int().min(0).default(0),
});
export type IdentityProviderConfig = z.output<typeof identityProviderConfig>;

const credentials = z.object({ login: z.string().max(200), password: z.string().max(200) });
const interactionParams = z.object({ uid: z.string().min(1).max(100) });

/**
 * Creates the identity provider: discovery, authorization, token and key routes of `oidc-provider`, and a
 * sign-in form.
 */
export async function createIdentityProvider(config: IdentityProviderConfig): Promise<Neighbour> {
  let stopping = false;
  const server = createNeighbourServer('identity-provider', config.LOG_LEVEL, { isReady: () => !stopping });
  const provider = createProvider({
    issuer: config.ISSUER ?? `http://${config.HOST}:${String(config.PORT)}`,
    // Its own server has no TLS, so an https issuer implies a proxy.
    behindProxy: config.ISSUER?.startsWith('https:') === true,
    clientId: config.CLIENT_ID,
    clientSecret: config.CLIENT_SECRET,
    redirectUris: config.REDIRECT_URIS,
    authTimeAnnounced: config.AUTH_TIME_ANNOUNCED,
  });
  provider.on('server_error', (_context, error) => server.log.error({ err: error }, 'oidc-provider failed'));
  await server.register((scope, _options, done) => {
    addInteractionRoutes(scope, provider, config);
    done();
  });
  await server.register((scope, _options, done) => {
    addProtocolRoutes(scope, provider);
    done();
  });
  return {
    server,
    markStopping: () => {
      stopping = true;
    },
    release: () => Promise.resolve(),
  };
}

function addInteractionRoutes(
  scope: FastifyInstance,
  provider: Provider,
  { USER_PASSWORD: password, SIGN_IN_AGE_SECONDS: ageSeconds }: IdentityProviderConfig,
): void {
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: 16_384 },
    (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(String(body)))),
  );
  scope.get('/interaction/:uid', async (request, reply) => {
    const { uid } = interactionParams.parse(request.params);
    await provider.interactionDetails(request.raw, reply.raw);
    return sendPage(reply, 200, loginPage(uid, null));
  });
  scope.post('/interaction/:uid/login', async (request, reply) => {
    const { uid } = interactionParams.parse(request.params);
    const attempt = credentials.parse(request.body);
    // Refuses an unknown or finished interaction while this server can still respond.
    await provider.interactionDetails(request.raw, reply.raw);
    const account = findAccountByLogin(attempt.login);
    if (account === null || !sameText(attempt.password, password)) {
      return sendPage(reply, 401, loginPage(uid, 'User or password is wrong.'));
    }
    const now = Math.floor(SYSTEM_CLOCK.now().getTime() / SECOND_MS);
    const login = { accountId: account.subject, ts: now - ageSeconds };
    await handOver(request, reply, (raw, response) => provider.interactionFinished(raw, response, { login }));
  });
}

/**
 * Adds all other routes, which `oidc-provider` handles. It reads the request itself, so Fastify must not
 * parse the body.
 */
function addProtocolRoutes(scope: FastifyInstance, provider: Provider): void {
  const handle = provider.callback();
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
  scope.all('/*', (request, reply) => handOver(request, reply, handle));
}

async function handOver(
  request: FastifyRequest,
  reply: FastifyReply,
  handle: (raw: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<void> {
  reply.hijack();
  await handle(request.raw, reply.raw);
}

function sendPage(reply: FastifyReply, status: number, html: string): FastifyReply {
  return reply.code(status).type('text/html; charset=utf-8').header('cache-control', 'no-store').send(html);
}

function sameText(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Returns the HTML sign-in form of one interaction, with `complaint` above the form. */
function loginPage(interactionId: string, complaint: string | null): string {
  const notice = complaint === null ? '' : `<p role="alert">${escapeHtml(complaint)}</p>`;
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sign in</title></head>
<body>
<h1>Development identity provider</h1>
${notice}
<form method="post" action="/interaction/${escapeHtml(interactionId)}/login">
<label>User <input name="login" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Sign in</button>
</form>
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${String(character.codePointAt(0))};`);
}
