import { customFetch, createRemoteJWKSet, jwtVerify } from 'jose';
import { passportJwtSecret } from 'jwks-rsa';
import * as openid from 'openid-client';
import { ExtractJwt, Strategy } from 'passport-jwt';
import {
  BACKEND,
  REPORTS,
  agentOf,
  bearerOf,
  startAuthService,
  startReplica,
  testEnvironment,
} from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

const { TOKEN_ISSUER: issuer = '', TOKEN_AUDIENCE: audience = '' } = testEnvironment('');

/** Validators of other teams, which are configured with the issuer's URL only. */
describe('foreign validators', () => {
  let service: AuthFixture;
  let es256: Tokens;
  let hs256: Tokens;
  beforeAll(async () => {
    service = await startAuthService();
    hs256 = await signIn();
    es256 = (
      await service.post('/auth/token/refresh', { refreshToken: hs256.refreshToken, hmacSigning: false })
    ).body as Tokens;
  });
  afterAll(() => service.stop());

  const signIn = async (): Promise<Tokens> =>
    (await service.post('/auth/token/trust-simple', { ...BACKEND, persona: 2, userName: 'carl.customer' }))
      .body as Tokens;

  /** Sends requests for the issuer's URL to this replica. */
  const fetchAtIssuer = async (address: string | URL, init?: object): Promise<Response> => {
    const local = new URL(String(address).replace(issuer, ''), await service.app.getUrl());
    return fetch(local, init);
  };
  const discover = (
    algorithm: 'oidc' | 'oauth2',
    { applicationKey, sharedSecret } = BACKEND,
  ): Promise<openid.Configuration> =>
    openid.discovery(new URL(issuer), applicationKey, undefined, openid.ClientSecretBasic(sharedSecret), {
      algorithm,
      [openid.customFetch]: fetchAtIssuer,
    });

  it.each(['/.well-known', '/auth/.well-known'])('find the same metadata under %s', async (path) => {
    const found = await Promise.all(
      ['openid-configuration', 'oauth-authorization-server'].map((name) => service.get(`${path}/${name}`)),
    );
    for (const { status, body } of found) {
      expect(status).toBe(200);
      expect(body).toMatchObject({ issuer, jwks_uri: `${issuer}/auth/.well-known/jwks.json` });
    }
  });

  it('find no metadata if the issuer is a name rather than a URL', async () => {
    const environment = { TOKEN_ISSUER: 'platform-auth' };
    const named = await startReplica(service.database.url, { environment });
    for (const path of ['/.well-known', '/auth/.well-known'])
      for (const name of ['openid-configuration', 'oauth-authorization-server'])
        expect((await agentOf(named).get(`${path}/${name}`)).status).toBe(404);
    await named.close();
  });

  it('jose verifies with the discovered keys', async () => {
    const { jwks_uri: keys = '' } = (await discover('oidc')).serverMetadata();
    const keySet = createRemoteJWKSet(new URL(keys), { [customFetch]: fetchAtIssuer });
    const { payload } = await jwtVerify(es256.accessToken, keySet, { issuer, audience, typ: 'at+jwt' });
    expect(payload).toMatchObject({ sub: 'personid:1001', sid: expect.any(String) });
    await expect(jwtVerify(hs256.accessToken, keySet, { issuer, audience })).rejects.toThrow();
  });

  it('passport-jwt verifies with jwks-rsa', async () => {
    const { jwks_uri: jwksUri = '' } = (await discover('oauth2')).serverMetadata();
    const fetcher = async (address: string): Promise<{ keys: unknown }> =>
      (await fetchAtIssuer(address)).json() as Promise<{ keys: unknown }>;
    const strategy = new Strategy(
      {
        jwtFromRequest: ExtractJwt.fromAuthHeaderAsBearerToken(),
        algorithms: ['ES256'],
        issuer,
        audience,
        secretOrKeyProvider: passportJwtSecret({ jwksUri, fetcher }),
      } as never,
      (payload, done) => (done as (error: null, user: unknown) => void)(null, payload),
    ) as unknown as Record<string, unknown> & { authenticate: (request: object) => void };
    const outcome = (token: string): Promise<unknown> =>
      new Promise((resolve) => {
        Object.assign(strategy, { success: resolve, fail: () => resolve('refused'), error: resolve });
        strategy.authenticate({ headers: { authorization: `Bearer ${token}` } });
      });
    expect(await outcome(es256.accessToken)).toMatchObject({ sub: 'personid:1001' });
    expect(await outcome(`${es256.accessToken.slice(0, -4)}AAAA`)).toBe('refused');
  });

  it.each(['oidc', 'oauth2'] as const)(
    'openid-client introspects after discovery by %s',
    async (algorithm) => {
      const config = await discover(algorithm);
      for (const token of [es256.accessToken, hs256.accessToken])
        expect(await openid.tokenIntrospection(config, token)).toMatchObject({
          active: true,
          token_type: 'Bearer',
          sub: 'personid:1001',
          client_id: 'demo-backend',
          iss: issuer,
        });
      expect(await openid.tokenIntrospection(config, es256.refreshToken)).toMatchObject({
        active: true,
        sub: 'personid:1001',
        client_id: 'demo-backend',
      });
    },
  );

  it('learn nothing of invalid tokens, nor of other applications’ refresh tokens', async () => {
    const config = await discover('oidc');
    const inactive = { active: false };
    const ended = await signIn();
    await bearerOf(service.post('/auth/logout'), ended.accessToken);
    expect(await openid.tokenIntrospection(config, ended.refreshToken)).toEqual(inactive);
    // A used token may be repeated at once, but not after its successor has been used.
    const used = await signIn();
    for (let token = used.refreshToken, times = 0; times < 2; times += 1)
      token = ((await service.post('/auth/token/refresh', { refreshToken: token })).body as Tokens)
        .refreshToken;
    for (const token of ['x', `${es256.accessToken}x`, used.refreshToken])
      expect(await openid.tokenIntrospection(config, token)).toEqual(inactive);
    const others = await discover('oidc', REPORTS);
    expect(await openid.tokenIntrospection(others, es256.refreshToken)).toEqual(inactive);
    expect(await openid.tokenIntrospection(others, es256.accessToken)).toMatchObject({ active: true });
  });

  it('must prove themselves', async () => {
    const ask = (credentials: string | null, body = `token=${es256.accessToken}`) => {
      const sent = agentOf(service.app).post('/auth/introspect').type('form');
      return (credentials === null ? sent : sent.set('Authorization', credentials)).send(body);
    };
    const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
    const wrong = [null, basic('demo-backend:wrong'), basic('nobody:wrong'), `Bearer ${es256.accessToken}`];
    for (const credentials of wrong) {
      const { status, headers, type } = await ask(credentials);
      expect([status, type]).toEqual([401, 'application/problem+json']);
      expect(headers['www-authenticate']).toBe('Basic realm="platform"');
    }
    // Secrets in the body are ignored, and must not appear in a log.
    const inBody = `token=x&client_id=demo-backend&client_secret=${BACKEND.sharedSecret}`;
    expect((await ask(null, inBody)).status).toBe(401);
    const right = basic(`${BACKEND.applicationKey}:${BACKEND.sharedSecret}`);
    expect((await ask(right, 'token_type_hint=access_token')).status).toBe(400);
    expect((await ask(right)).headers['cache-control']).toBe('no-store');
  });
});
