import type { IncomingMessage, ServerResponse } from 'node:http';
import { timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { neighbourConfigShape, portVariable } from '../neighbour/run-neighbour';
import type { Neighbour } from '../neighbour/run-neighbour';
import { createNeighbourServer } from '../neighbour/server';
import type { Provider } from 'oidc-provider';
import { findAccountByLogin } from './accounts';
import { loginPage } from './login-page';
import { createProvider } from './provider';

/** Variables of the identity provider. ISSUER is what callers reach it at; by default its own address. With https, a proxy
 *  before it ends TLS and sends X-Forwarded-Proto. */
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
});
export type IdentityProviderConfig = z.output<typeof identityProviderConfig>;

const credentials = z.object({ login: z.string().max(200), password: z.string().max(200) });
const interactionParams = z.object({ uid: z.string().min(1).max(100) });

/** The identity provider: discovery, authorization, token and key routes of `oidc-provider`, and a sign-in form. */
export async function createIdentityProvider(config: IdentityProviderConfig): Promise<Neighbour> {
  let stopping = false;
  const server = createNeighbourServer('identity-provider', config.LOG_LEVEL, { isReady: () => !stopping });
  const provider = createProvider({
    issuer: config.ISSUER ?? `http://${config.HOST}:${String(config.PORT)}`,
    // It speaks http itself.
    behindProxy: config.ISSUER?.startsWith('https:') === true,
    clientId: config.CLIENT_ID,
    clientSecret: config.CLIENT_SECRET,
    redirectUris: config.REDIRECT_URIS,
  });
  provider.on('server_error', (_context, error) => server.log.error({ err: error }, 'oidc-provider failed'));
  await server.register((scope, _options, done) => {
    addInteractionRoutes(scope, provider, config.USER_PASSWORD);
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

function addInteractionRoutes(scope: FastifyInstance, provider: Provider, password: string): void {
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
    // Refuses an unknown or finished interaction while this server can still answer.
    await provider.interactionDetails(request.raw, reply.raw);
    const account = findAccountByLogin(attempt.login);
    if (account === null || !sameText(attempt.password, password)) {
      return sendPage(reply, 401, loginPage(uid, 'User or password is wrong.'));
    }
    await handOver(request, reply, (raw, answer) =>
      provider.interactionFinished(raw, answer, { login: { accountId: account.subject } }),
    );
  });
}

/** Everything else belongs to the protocol; its library reads the request itself, so nothing here may parse a body. */
function addProtocolRoutes(scope: FastifyInstance, provider: Provider): void {
  const handle = provider.callback();
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
  scope.all('/*', (request, reply) => handOver(request, reply, handle));
}

async function handOver(
  request: FastifyRequest,
  reply: FastifyReply,
  handle: (raw: IncomingMessage, answer: ServerResponse) => Promise<void>,
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
