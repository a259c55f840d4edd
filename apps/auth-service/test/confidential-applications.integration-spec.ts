import { createHash, randomBytes } from 'node:crypto';
import { signTrustRequest } from '@platform/auth-client';
import type { TokenFlow } from '../src/rejections/token-rejection';
import type { TokenResponse } from '../src/token/token.dto';
import { administrator } from './admin-fixture';
import { PASSWORD, bearerOf, claimsOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { IdentityProviderProcess, OPENID_CLIENT } from './identity-provider-process';
import { SignInBrowser } from './sign-in-browser';

const VAULT = 'vault';
const RETURN_URL = 'https://vault.example.org/signed-in';
const PROXY_SECRET = 'proxy-secret-for-tests-only-0000000001';
const CARL = { persona: 2, userName: 'carl.customer' };

/** The application's secret in a request. */
type Shown = 'nothing' | 'wrong' | 'right';
/** HTTP status and rejection reason. */
type Outcome = `${number}/${number}`;

describe('a confidential application', () => {
  let provider: IdentityProviderProcess;
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  let sharedSecret: string;

  beforeAll(async () => {
    provider = await IdentityProviderProcess.start();
    service = await startAuthService({
      environment: {
        ...OPENID_CLIENT,
        OPENID_ISSUER: provider.issuer,
        OPENID_HTTP_ALLOWED: 'true',
        USER_FLOW_DEFAULT_APPLICATION: VAULT,
        OPENID_DEFAULT_APPLICATION: VAULT,
        WINDOWS_FLOW_DEFAULT_APPLICATION: VAULT,
        WINDOWS_AUTHENTICATION: 'trusted-header',
        WINDOWS_REALM: 'CORP.TEST',
        WINDOWS_PROXY_SECRET: PROXY_SECRET,
        TOKEN_RATE_LIMIT_PER_APPLICATION: '1000',
      },
    });
    admin = administrator(service.database.ownerUrl);
    const created = await admin.json(
      `applications create ${VAULT} --personas all --flows all --allow-refresh --confidential`,
    );
    expect(created).toMatchObject({ confidential: true });
    sharedSecret = created.sharedSecret;
    await admin.json(`applications set-return-addresses ${VAULT} ${RETURN_URL}`);
    await service.database.query(
      `INSERT INTO auth.external_identity (issuer, subject, person_id) VALUES ($1, 'external-carl', 1001)`,
      [provider.issuer],
    );
    await service.database.query(
      `UPDATE internal_legacy.internal_user SET windows_account_key = 'ivy@CORP.TEST' WHERE user_id = 9001`,
    );
  }, 90_000);
  afterAll(async () => {
    await service.stop();
    await provider.stop();
  });

  const secretOf = (shown: Shown): string | undefined =>
    ({ nothing: undefined, wrong: `${sharedSecret}x`, right: sharedSecret })[shown];
  const outcomeOf = ({ status, body }: { status: number; body: unknown }): Outcome =>
    `${status}/${(body as TokenResponse).rejectionReason}`;

  const login = (shown: Shown): Promise<{ status: number; body: TokenResponse }> =>
    service
      .post('/auth/token/user', { user: 'carl.customer', password: PASSWORD, sharedSecret: secretOf(shown) })
      .then((response) => response);
  const tokens = async (): Promise<{ accessToken: string; refreshToken: string }> => {
    const { accessToken, refreshToken } = (await login('right')).body;
    return { accessToken: accessToken!, refreshToken: refreshToken! };
  };

  const browserHeaders = (): Record<string, string> => ({ 'X-Application-Key': VAULT });
  /** Starts a sign-in in a browser, up to the provider's form. */
  async function beginSignIn(query = ''): Promise<{
    browser: SignInBrowser;
    url: string;
    fields: Record<string, string>;
  }> {
    const browser = new SignInBrowser();
    const url = await service.app.getUrl();
    const at = await browser.initiate(url, query === '' ? browserHeaders() : {}, query);
    return { browser, url, fields: await browser.signIn(at, 'carl.customer') };
  }

  async function completeDirectly(path: string): Promise<Outcome> {
    const { browser, url, fields } = await beginSignIn();
    return outcomeOf(await browser.complete(url, fields, { path }));
  }

  async function exchangeCode(shown: Shown): Promise<Outcome> {
    const codeVerifier = randomBytes(48).toString('base64url');
    const codeChallenge = createHash('sha256').update(codeVerifier).digest('base64url');
    const parameters = { applicationKey: VAULT, returnUrl: RETURN_URL, codeChallenge };
    const { browser, url, fields } = await beginSignIn(new URLSearchParams(parameters).toString());
    const location = await browser.completeElsewhere(url, fields);
    const code = location.searchParams.get('code');
    const request = { applicationKey: VAULT, code, codeVerifier, sharedSecret: secretOf(shown) };
    return outcomeOf(await service.post('/auth/token/code', request));
  }

  async function trust(shown: Shown): Promise<Outcome> {
    const request = { requestTimestampUtc: new Date().toISOString(), applicationKey: VAULT, ...CARL };
    const authenticationCode = shown === 'nothing' ? undefined : signTrustRequest(request, secretOf(shown)!);
    return outcomeOf(await service.post('/auth/token/trust', { ...request, authenticationCode }));
  }

  const bearer = async (path: string, shown: Shown, inBody: boolean): Promise<Outcome> => {
    const { accessToken } = await tokens();
    const body = { sharedSecret: secretOf(shown), ...(inBody ? { token: accessToken } : {}) };
    return outcomeOf(await bearerOf(service.post(path, body), inBody ? undefined : accessToken));
  };

  type Asked = Record<string, (shown: Shown) => Promise<Outcome>>;
  const FLOWS: Record<TokenFlow, Asked> = {
    password: { user: async (shown) => outcomeOf(await login(shown)) },
    refresh: {
      refresh: async (shown) => {
        const { refreshToken } = await tokens();
        const body = { refreshToken, sharedSecret: secretOf(shown) };
        return outcomeOf(await service.post('/auth/token/refresh', body));
      },
    },
    trust: { trust },
    'trust-simple': {
      'trust-simple': async (shown) => {
        const request = { applicationKey: VAULT, sharedSecret: secretOf(shown), ...CARL };
        return outcomeOf(await service.post('/auth/token/trust-simple', request));
      },
    },
    bearer: {
      bearer: (shown) => bearer('/auth/token/bearer', shown, false),
      trustedToken: (shown) => bearer('/auth/token/trustedToken', shown, true),
    },
    code: { code: exchangeCode },
    openid: {
      openId: () => completeDirectly('/auth/token/openId'),
      AzureADLogOn: () => completeDirectly('/auth/token/user/AzureADLogOn'),
    },
    windows: {
      winauth: async () => {
        const headers = { 'X-Remote-User': 'ivy@CORP.TEST', 'X-Proxy-Secret': PROXY_SECRET };
        return outcomeOf(await service.get('/auth/token/user/winauth').set(headers));
      },
    },
  };

  /** The outcome of each flow with no secret, a wrong one and the right one. */
  const EXPECTED: Record<TokenFlow, readonly [Outcome, Outcome, Outcome]> = {
    password: ['422/8', '401/1', '200/0'],
    refresh: ['422/8', '401/1', '200/0'],
    trust: ['400/7', '401/1', '200/0'],
    'trust-simple': ['400/7', '401/1', '200/0'],
    bearer: ['401/8', '401/1', '200/0'],
    code: ['401/8', '401/1', '200/0'],
    // A browser cannot send a secret.
    openid: ['401/8', '401/8', '401/8'],
    windows: ['401/8', '401/8', '401/8'],
  };

  it.each(
    Object.entries(FLOWS).flatMap(([flow, asked]) => Object.keys(asked).map((endpoint) => [flow, endpoint])),
  )('gets no token in flow %s, endpoint %s, without its secret', async (flow, endpoint) => {
    const ask = FLOWS[flow as TokenFlow][endpoint]!;
    const outcomes = [await ask('nothing'), await ask('wrong'), await ask('right')];
    expect(outcomes).toEqual(EXPECTED[flow as TokenFlow]);
  });

  it('is required to prove itself only after the user’s own credentials are accepted', async () => {
    const wrong = { user: 'carl.customer', password: 'wrong' };
    expect(outcomeOf(await service.post('/auth/token/user', wrong))).toBe('401/1');
    const { refreshToken } = await tokens();
    expect(outcomeOf(await service.post('/auth/token/refresh', { refreshToken: `${refreshToken}x` }))).toBe(
      '401/4',
    );
  });

  it('can still use its refresh token after a request without the secret', async () => {
    const { refreshToken } = await tokens();
    const refresh = async (shown: Shown): Promise<Outcome> =>
      outcomeOf(await service.post('/auth/token/refresh', { refreshToken, sharedSecret: secretOf(shown) }));
    expect([await refresh('nothing'), await refresh('wrong'), await refresh('right')]).toEqual([
      '422/8',
      '401/1',
      '200/0',
    ]);
  });

  it('proves itself with a live secret only', async () => {
    const { sharedSecret: second } = await admin.json(`applications rotate-secret ${VAULT}`);
    const withSecond = { user: 'carl.customer', password: PASSWORD, sharedSecret: second as string };
    expect(outcomeOf(await service.post('/auth/token/user', withSecond))).toBe('200/0');
    await admin.json(`applications expire-secret ${VAULT} 2`);
    expect(outcomeOf(await service.post('/auth/token/user', withSecond))).toBe('401/1');
    expect(outcomeOf(await login('right'))).toBe('200/0');
  });

  it('counts only proven requests against its rate limit', async () => {
    const taken = async (): Promise<number> => {
      const [row] = await service.database.query<{ count: number }>(
        `SELECT count(*)::int FROM auth.rate_limit WHERE bucket LIKE 'application:%'`,
      );
      return row!.count;
    };
    const forget = (): Promise<unknown> => service.database.query('DELETE FROM auth.rate_limit');
    const { refreshToken } = await tokens();
    const { accessToken } = await tokens();
    const asked: [string, object, string | undefined][] = [
      ['user', { user: 'carl.customer', password: 'wrong' }, undefined],
      ['refresh', { refreshToken }, undefined],
      ['bearer', {}, accessToken],
    ];
    for (const [path, body, token] of asked) {
      const send = (shown: Shown) =>
        bearerOf(service.post(`/auth/token/${path}`, { ...body, sharedSecret: secretOf(shown) }), token);
      await forget();
      await send('nothing');
      await send('wrong');
      expect([path, await taken()]).toEqual([path, 0]);
      await send('right');
      expect([path, await taken()]).toEqual([path, 1]);
    }
  });

  it('stays confidential until an administrator changes it', async () => {
    await admin.json(`applications update ${VAULT} --no-confidential`);
    expect(outcomeOf(await login('nothing'))).toBe('200/0');
    // A secret that is sent must be right, for any application.
    expect(outcomeOf(await login('wrong'))).toBe('401/1');
    const { accessToken, refreshToken } = (await login('nothing')).body;
    expect(claimsOf(accessToken!)).toMatchObject({ client_id: VAULT });
    expect(await admin.json(`applications update ${VAULT} --confidential`)).toEqual({
      applicationKey: VAULT,
      confidential: true,
    });
    // Tokens that the application got before need a proof to be refreshed and exchanged.
    expect(outcomeOf(await service.post('/auth/token/refresh', { refreshToken }))).toBe('422/8');
    expect(outcomeOf(await bearerOf(service.post('/auth/token/bearer'), accessToken!))).toBe('401/8');
    expect((await admin.run('applications list')).out).toMatch(/CONFIDENTIAL/);
  });

  it.each([undefined, {}, null, [], 'text'])(
    'does not change how bearer treats the body %j of other applications',
    async (body) => {
      const user = { user: 'carl.customer', password: PASSWORD };
      const sent = service.post('/auth/token/user', user).set('X-Application-Key', 'demo-backend');
      const { accessToken } = (await sent.expect(200)).body as { accessToken: string };
      const exchange = bearerOf(service.post('/auth/token/bearer'), accessToken);
      if (body !== undefined) void exchange.type('json').send(JSON.stringify(body));
      expect(outcomeOf(await exchange)).toBe('200/0');
    },
  );
});
