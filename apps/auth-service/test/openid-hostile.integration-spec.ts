import { generateKeyPairSync } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { claimsOf, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { OPENID_CLIENT } from './identity-provider-process';
import { MisbehavingProvider, macSigned, unsigned } from './misbehaving-provider';
import type { Behaviour } from './misbehaving-provider';
import { SignInBrowser } from './sign-in-browser';

const FOREIGN_KEY = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
const LONG_AGO = 1_000_000_000;

describe('single sign-on with a provider that misbehaves', () => {
  let provider: MisbehavingProvider;
  let service: AuthFixture;
  let url: string;
  const replicas: NestFastifyApplication[] = [];

  const environment = (): NodeJS.ProcessEnv => ({
    ...OPENID_CLIENT,
    OPENID_ISSUER: provider.issuer,
    OPENID_HTTP_ALLOWED: 'true',
    OPENID_TIMEOUT_MS: '300',
  });

  beforeAll(async () => {
    provider = await MisbehavingProvider.start();
    service = await startAuthService({ environment: environment() });
    url = await service.app.getUrl();
    await service.database.query(
      `INSERT INTO auth.external_identity VALUES ($1, 'external-carl', 1001, NULL)`,
      [provider.issuer],
    );
  });
  beforeEach(() => {
    provider.behaviour = {};
    provider.metadata = null;
    provider.keys = null;
  });
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.close()));
    await service.stop();
    await provider.stop();
  });

  /** Starts a replica that has not yet contacted the provider. */
  async function freshReplica(): Promise<string> {
    const replica = await startReplica(service.database.url, { environment: environment() });
    replicas.push(replica);
    return replica.getUrl();
  }

  async function signIn(
    behaviour: Behaviour,
    {
      callback = {},
      replicaUrl = url,
      path = '/auth/token/openId',
    }: { callback?: Record<string, string>; replicaUrl?: string; path?: string } = {},
  ): Promise<{ status: number; reason: number | undefined; accessToken: string }> {
    const browser = new SignInBrowser();
    const sentTo = await browser.initiate(replicaUrl);
    provider.nonce = sentTo.searchParams.get('nonce')!;
    provider.behaviour = behaviour;
    const state = sentTo.searchParams.get('state')!;
    const fields = { state, code: 'code-of-the-provider', iss: provider.issuer, ...callback };
    const { status, body } = await browser.complete(replicaUrl, fields, { path });
    return { status, reason: body.rejectionReason, accessToken: body.accessToken };
  }

  it('signs in while it behaves correctly, and redeems the code with verifier, redirect URI and secret', async () => {
    const { status, accessToken } = await signIn({});
    expect(status).toBe(200);
    expect(claimsOf(accessToken)).toMatchObject({ sub: 'personid:1001' });
    expect(Object.fromEntries(provider.tokenRequest)).toEqual({
      grant_type: 'authorization_code',
      code: 'code-of-the-provider',
      redirect_uri: OPENID_CLIENT.OPENID_REDIRECT_URI,
      code_verifier: expect.stringMatching(/^[\w-]{43}$/),
      client_id: OPENID_CLIENT.OPENID_CLIENT_ID,
      client_secret: OPENID_CLIENT.OPENID_CLIENT_SECRET,
    });
  });

  it('adopts the provider’s authentication time, but never one in the future', async () => {
    const anHourAgo = Math.floor(Date.now() / 1_000) - 3_600;
    const early = claimsOf((await signIn({ claims: { auth_time: anHourAgo } })).accessToken);
    expect(early.auth_time).toBe(anHourAgo);
    const late = claimsOf((await signIn({ claims: { auth_time: 2 * LONG_AGO * 2 } })).accessToken);
    expect(late.auth_time).toBeLessThanOrEqual(late.iat as number);
  });

  it.each<[string, Behaviour]>([
    ['a wrong nonce', { claims: { nonce: 'another' } }],
    ['no nonce', { claims: { nonce: undefined } }],
    ['a signature by another key', { key: FOREIGN_KEY }],
    ['a signature cut off', { idToken: (signed) => signed.slice(0, signed.lastIndexOf('.') + 1) }],
    ['a claim changed after signing', { idToken: (signed) => tamper(signed) }],
    ['a key that is not published', { key: FOREIGN_KEY, header: { kid: 'another' } }],
    ['no signature', { idToken: (_signed, claims) => unsigned(claims) }],
    [
      'the client secret for a key',
      { idToken: (_signed, claims) => macSigned(claims, OPENID_CLIENT.OPENID_CLIENT_SECRET) },
    ],
    ['an unknown critical header', { header: { crit: ['x'], x: 1 } }],
    ['another issuer', { claims: { iss: 'https://another.example' } }],
    ['another audience', { claims: { aud: 'another' } }],
    ['several audiences and another authorized party', { claims: { aud: ['auth-service', 'b'], azp: 'b' } }],
    ['an expired lifetime', { claims: { iat: LONG_AGO, exp: LONG_AGO + 300 } }],
    ['no expiry', { claims: { exp: undefined } }],
    ['no authentication time', { claims: { auth_time: undefined } }],
    ['an authentication too long ago', { claims: { auth_time: LONG_AGO } }],
    ['a text as authentication time', { claims: { auth_time: 'now' } }],
    ['no subject', { claims: { sub: undefined } }],
  ])('refuses an ID token with %s', async (_, behaviour) => {
    expect(await signIn(behaviour)).toMatchObject({ status: 401, reason: 1 });
  });

  it.each<[string, Behaviour]>([
    ['no ID token at all', { idToken: () => undefined }],
    ['a malformed ID token', { idToken: () => 'x.y.z' }],
    ['the error that the code is not valid', { reply: { status: 400, body: { error: 'invalid_grant' } } }],
  ])('refuses a token response with %s', async (_, behaviour) => {
    expect(await signIn(behaviour)).toMatchObject({ status: 401, reason: 1 });
  });

  it.each<[string, Record<string, string>]>([
    ['that names another issuer', { iss: 'https://another.example' }],
    ['with an ID token of its own', { id_token: unsigned({ sub: 'external-carl' }) }],
    ['that is a response token', { response: 'x.y.z' }],
  ])('refuses a callback %s', async (_, callback) => {
    for (const path of ['/auth/token/openId', '/auth/token/user/AzureADLogOn'])
      expect(await signIn({}, { callback, path })).toMatchObject({ status: 401, reason: 1 });
  });

  it.each<[string, Behaviour]>([
    ['fails', { reply: { status: 500, body: {} } }],
    ['shows a page', { reply: { headers: { 'content-type': 'text/html' }, body: '<h1>Maintenance</h1>' } }],
    ['sends elsewhere', { reply: { status: 302, headers: { location: 'http://127.0.0.1:9' }, body: '' } }],
    ['limits the rate', { reply: { status: 429, body: {} } }],
    ['does not know this service', { reply: { status: 401, body: { error: 'invalid_client' } } }],
    [
      'challenges this service',
      { reply: { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' }, body: '' } },
    ],
    ['hangs', { hangs: true }],
  ])('returns 503 when the token endpoint %s', async (_, behaviour) => {
    expect(await signIn(behaviour)).toMatchObject({ status: 503, reason: undefined });
    expect(await signIn({})).toMatchObject({ status: 200 });
  });

  it('returns 503 while the keys are unavailable, and recovers', async () => {
    const replicaUrl = await freshReplica();
    provider.keys = { status: 500, body: {} };
    expect(await signIn({}, { replicaUrl })).toMatchObject({ status: 503, reason: undefined });
    provider.keys = null;
    expect(await signIn({}, { replicaUrl })).toMatchObject({ status: 200 });
  });

  it.each([
    ['of another issuer', (normal: object) => ({ body: { ...normal, issuer: 'https://another.example' } })],
    ['without endpoints', () => ({ body: { issuer: provider.issuer } })],
    [
      'with an endpoint that is not a URL',
      (normal: object) => ({ body: { ...normal, token_endpoint: '/token' } }),
    ],
    ['that is not JSON', () => ({ body: '{' })],
  ])('returns 503 at the start with metadata %s', async (_, metadata) => {
    const replicaUrl = await freshReplica();
    provider.metadata = metadata;
    const response = await fetch(`${replicaUrl}/auth/token/sso/initiate`, { redirect: 'manual' });
    expect(response.status).toBe(503);
  });

  it('reads metadata and keys once for many sign-ins in a row', async () => {
    const replicaUrl = await freshReplica();
    await signIn({}, { replicaUrl });
    provider.requests.length = 0;
    for (let round = 0; round < 3; round += 1) await signIn({}, { replicaUrl });
    expect(provider.requests.filter((path) => path === '/jwks')).toEqual([]);
    expect(provider.requests.filter((path) => path !== '/token').length).toBeLessThanOrEqual(3);
    provider.requests.length = 0;
    const many = Array.from({ length: 20 }, () => new SignInBrowser().initiate(replicaUrl));
    await Promise.all(many);
    expect(provider.requests.length).toBeLessThanOrEqual(2);
  });
});

/** Changes the subject but keeps the signature. */
function tamper(token: string): string {
  const [header, payload, signature] = token.split('.') as [string, string, string];
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
  const changed = Buffer.from(JSON.stringify({ ...claims, sub: 'external-ivy' })).toString('base64url');
  return `${header}.${changed}.${signature}`;
}
