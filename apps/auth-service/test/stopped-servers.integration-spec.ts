import { signTrustRequest } from '@platform/auth-client';
import { createTestDatabase, eventually, startPrivatePostgresql } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import type { Response, Test } from 'supertest';
import { BACKEND, PASSWORD, agentOf, bearerOf, migrateWithIdentities, postTo } from './auth-fixture';
import { IdentityProviderProcess, OPENID_CLIENT } from './identity-provider-process';
import { startReplicaProcess } from './replica-processes';
import type { ReplicaProcess } from './replica-processes';
import { SignInBrowser } from './sign-in-browser';

/** Upper bound for a response: 3 s to connect, 7 s for a statement, and 2 s for a busy machine. */
const LONGEST_RESPONSE_MS = 12_000;
const PROXY_SECRET = 'proxy-secret-for-tests-only-0000000003';
const CARL = { persona: 2, userName: 'carl.customer' };
const NEEDS_PROVIDER = ['sso/initiate', 'openId', 'user/AzureADLogOn'];

/** Requests by endpoint that succeed while all servers run. */
type Requests = Record<string, () => Test>;

describe('a process of the built service whose servers are stopped', () => {
  let postgresql: Awaited<ReturnType<typeof startPrivatePostgresql>>;
  let provider: IdentityProviderProcess;
  let database: TestDatabase;
  let replica: ReplicaProcess;
  beforeAll(async () => {
    [postgresql, provider] = await Promise.all([startPrivatePostgresql(), IdentityProviderProcess.start()]);
    database = await createTestDatabase({ migrate: migrateWithIdentities, server: postgresql.server.url });
    await database.query(
      `INSERT INTO auth.external_identity (issuer, subject, person_id) VALUES ($1, 'external-carl', 1001)`,
      [provider.issuer],
    );
    await database.query(
      `UPDATE internal_legacy.internal_user SET windows_account_key = 'ivy@CORP.TEST' WHERE user_id = 9001`,
    );
    replica = await startReplicaProcess(database.url, {
      ...OPENID_CLIENT,
      OPENID_ISSUER: provider.issuer,
      OPENID_HTTP_ALLOWED: 'true',
      OPENID_TIMEOUT_MS: '1000',
      WINDOWS_AUTHENTICATION: 'trusted-header',
      WINDOWS_REALM: 'CORP.TEST',
      WINDOWS_PROXY_SECRET: PROXY_SECRET,
    });
  }, 120_000);
  afterAll(async () => {
    await replica.stop();
    await provider.stop();
    await database.drop();
    await postgresql.stop();
  }, 60_000);

  const post = (endpoint: string, body?: object): Test =>
    postTo(replica.url, `/auth/token/${endpoint}`, body);
  const get = (endpoint: string): Test => agentOf(replica.url).get(`/auth/token/${endpoint}`);

  function signed(): object {
    const requestTimestampUtc = new Date().toISOString();
    const unsigned = { requestTimestampUtc, applicationKey: BACKEND.applicationKey, ...CARL };
    return { ...unsigned, authenticationCode: signTrustRequest(unsigned, BACKEND.sharedSecret) };
  }

  /** Returns the callback request of a sign-in that has started but not completed. */
  async function callback(endpoint: string): Promise<() => Test> {
    const browser = new SignInBrowser();
    const fields = await browser.signIn(await browser.initiate(replica.url), 'carl.customer');
    const cookie = `openid-browser=${browser.cookies(replica.url).get('openid-browser')!}`;
    return () => post(endpoint).set('Cookie', cookie).type('form').send(fields);
  }

  /** Prepares one request for each token endpoint. */
  async function prepare(): Promise<Requests> {
    const { body: tokens } = await post('trust-simple', { ...BACKEND, ...CARL });
    const trust = signed();
    return {
      refresh: () => post('refresh', { refreshToken: tokens.refreshToken }),
      user: () => post('user', { user: 'carl.customer', password: PASSWORD }),
      trust: () => post('trust', trust),
      'trust-simple': () => post('trust-simple', { ...BACKEND, ...CARL }),
      bearer: () => bearerOf(post('bearer'), tokens.accessToken),
      trustedToken: () => post('trustedToken', { token: tokens.accessToken }),
      'user/winauth': () =>
        get('user/winauth').set({ 'X-Remote-User': 'ivy@CORP.TEST', 'X-Proxy-Secret': PROXY_SECRET }),
      'sso/initiate': () => get('sso/initiate'),
      openId: await callback('openId'),
      'user/AzureADLogOn': await callback('user/AzureADLogOn'),
    };
  }

  async function expectUnavailable(endpoint: string, send: () => Test): Promise<void> {
    const startedMs = performance.now();
    const { status, type, headers, body } = await send();
    expect({ endpoint, status, type }).toEqual({ endpoint, status: 503, type: 'application/problem+json' });
    expect(headers).toMatchObject({ 'retry-after': expect.any(String), 'cache-control': 'no-store' });
    expect(body).not.toHaveProperty('rejectionReason');
    expect(performance.now() - startedMs).toBeLessThan(LONGEST_RESPONSE_MS);
  }

  const expectSuccess = (endpoint: string, { status, body }: Response): void =>
    expect({ endpoint, status, reason: body.rejectionReason }).toEqual({
      endpoint,
      status: endpoint === 'sso/initiate' ? 302 : 200,
      reason: endpoint === 'sso/initiate' ? undefined : 0,
    });

  it('returns 503 in bounded time from every token endpoint while PostgreSQL is stopped, and recovers', async () => {
    const requests = await prepare();
    await postgresql.server.crash();
    await Promise.all(Object.entries(requests).map(([endpoint, send]) => expectUnavailable(endpoint, send)));
    expect((await agentOf(replica.url).get('/health/live')).status).toBe(200);
    await postgresql.server.start();
    await eventually(async () => expect((await agentOf(replica.url).get('/health/ready')).status).toBe(200), {
      timeoutMs: 30_000,
    });
    // Sends the same requests again: none of their proofs was consumed.
    for (const [endpoint, send] of Object.entries(requests)) expectSuccess(endpoint, await send());
  }, 90_000);

  it('returns 503 in bounded time where the stopped identity provider is needed, and recovers', async () => {
    const requests = await prepare();
    await provider.down();
    for (const [endpoint, send] of Object.entries(requests)) {
      // The provider's metadata is cached for a while: a sign-in can start, but not complete.
      if (endpoint === 'sso/initiate') await eventually(() => expectUnavailable(endpoint, send));
      else if (NEEDS_PROVIDER.includes(endpoint)) await expectUnavailable(endpoint, send);
      else expectSuccess(endpoint, await send());
    }
    await provider.up();
    const again = await prepare();
    for (const endpoint of NEEDS_PROVIDER) expectSuccess(endpoint, await again[endpoint]!());
  }, 90_000);
});
