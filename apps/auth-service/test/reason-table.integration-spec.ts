import { createHash } from 'node:crypto';
import { signTrustRequest } from '@platform/auth-client';
import type { Test } from 'supertest';
import { REJECTION_STATUS, TOKEN_FLOWS, TokenRejectionReason } from '../src/rejections/token-rejection';
import type { TokenFlow } from '../src/rejections/token-rejection';
import {
  BACKEND,
  PASSWORD,
  REPORTS,
  bearerOf,
  claimsOf,
  expectOutcome,
  renamedRefreshToken,
  startAuthService,
} from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { OPENID_CLIENT } from './identity-provider-process';
import { MisbehavingProvider } from './misbehaving-provider';

/** The endpoint of each flow, and its obsolete endpoint if any. */
const ENDPOINTS: Record<TokenFlow, readonly string[]> = {
  refresh: ['/auth/token/refresh'],
  password: ['/auth/token/user'],
  trust: ['/auth/token/trust'],
  'trust-simple': ['/auth/token/trust-simple'],
  bearer: ['/auth/token/bearer', '/auth/token/trustedToken'],
  openid: ['/auth/token/openId', '/auth/token/user/AzureADLogOn'],
  code: ['/auth/token/code'],
  windows: ['/auth/token/user/winauth'],
};

/** The specified statuses of the endpoints. Source: authentication spec, Token endpoints. */
const SPECIFIED: Partial<Record<TokenFlow, readonly number[]>> = {
  refresh: [200, 400, 401, 422],
  password: [200, 400, 401, 422],
  trust: [200, 400, 401, 422],
  'trust-simple': [200, 400, 401, 422],
  bearer: [200, 401],
  openid: [200, 400, 401],
};

interface Cell {
  flow: TokenFlow;
  reason: number;
  status: number;
}

/**
 * Returns every cell of the code's table, and a success cell for each flow, keyed by the name of its case.
 */
function cellsOfTheTable(): Map<string, Cell> {
  const cells = new Map<string, Cell>();
  for (const flow of TOKEN_FLOWS) {
    cells.set(`${flow} Successful 200`, { flow, reason: 0, status: 200 });
    for (const [text, cell] of Object.entries(REJECTION_STATUS[flow])) {
      if (cell === null) continue;
      const reason = Number(text);
      const stages: [string, number][] = typeof cell === 'number' ? [['', cell]] : Object.entries(cell);
      for (const [stage, status] of stages) {
        const name = [flow, TokenRejectionReason[reason], stage, status].filter((part) => part !== '');
        cells.set(name.join(' '), { flow, reason, status });
      }
    }
  }
  return cells;
}

/**
 * Cells that no request can reach. The Windows flow is a GET without body or parameters, so nothing in it
 * could be invalid.
 */
const UNREACHABLE = ['windows InvalidRequest 400'];

const CELLS = cellsOfTheTable();
const PROXY_SECRET = 'proxy-secret-for-tests-only-0000000002';

describe('the reason → status table, through HTTP', () => {
  let service: AuthFixture;
  let provider: MisbehavingProvider;
  beforeAll(async () => {
    provider = await MisbehavingProvider.start();
    service = await startAuthService({
      environment: {
        ...OPENID_CLIENT,
        OPENID_ISSUER: provider.issuer,
        OPENID_HTTP_ALLOWED: 'true',
        WINDOWS_AUTHENTICATION: 'trusted-header',
        WINDOWS_REALM: 'CORP.TEST',
        WINDOWS_PROXY_SECRET: PROXY_SECRET,
      },
    });
    const { database } = service;
    await database.query(`INSERT INTO auth.external_identity VALUES ($1, 'external-carl', 1001, NULL)`, [
      provider.issuer,
    ]);
    await database.query(
      `UPDATE auth.application SET return_urls = '{https://app.example.org/}' WHERE application_key = 'demo-backend'`,
    );
    await database.query(
      `UPDATE internal_legacy.internal_user SET windows_account_key = 'ivy@CORP.TEST' WHERE user_id = 9001`,
    );
  });
  afterAll(async () => {
    await service.stop();
    await provider.stop();
  });

  const carl = { persona: 2, userName: 'carl.customer' };

  async function tokensFor(): Promise<{ accessToken: string; refreshToken: string }> {
    const { body } = await service.post('/auth/token/trust-simple', { ...BACKEND, ...carl });
    return body;
  }

  /** Sends a request while `change` is in effect. */
  async function during(change: string, undo: string, send: () => Test): Promise<Awaited<Test>> {
    await service.database.query(change);
    try {
      return await send();
    } finally {
      await service.database.query(undo);
    }
  }

  let signatures = 0;
  function signed(change: object = {}, secret: string = BACKEND.sharedSecret): object {
    signatures += 1;
    const requestTimestampUtc = new Date(Date.now() - signatures).toISOString();
    const unsigned = { requestTimestampUtc, applicationKey: BACKEND.applicationKey, ...carl, ...change };
    return { ...unsigned, authenticationCode: signTrustRequest(unsigned, secret) };
  }

  /** Sends the callback of a sign-in that this browser has started. */
  async function callback(
    path: string,
    fields: object,
    headers: object = {},
    query = '',
  ): Promise<Awaited<Test>> {
    const begun = await service.get(`/auth/token/sso/initiate${query}`);
    const parameters = new URL(begun.headers.location!).searchParams;
    provider.nonce = parameters.get('nonce')!;
    const [cookie = ''] = begun.headers['set-cookie'] as unknown as string[];
    return service
      .post(path)
      .set({ Cookie: cookie.split(';')[0]!, ...headers })
      .type('form')
      .send({ state: parameters.get('state')!, iss: provider.issuer, ...fields });
  }

  const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
  const RETURN = { applicationKey: 'demo-backend', returnUrl: 'https://app.example.org/' };

  /** Requests the tokens of a sign-in that has returned to its application. */
  async function exchange(
    path: string,
    change: object = {},
    beforeExchange: () => Promise<unknown> = () => Promise.resolve(),
  ): Promise<Awaited<Test>> {
    const codeChallenge = createHash('sha256').update(VERIFIER).digest('base64url');
    const query = new URLSearchParams({ ...RETURN, codeChallenge }).toString();
    const { headers } = await callback('/auth/token/openId', { code: 'a-code' }, {}, `?${query}`);
    const code = new URL(headers['location']!).searchParams.get('code');
    const { applicationKey } = RETURN;
    await beforeExchange();
    return service.post(path, { applicationKey, code, codeVerifier: VERIFIER, ...change });
  }

  const refresh = (path: string, refreshToken: string): Test => service.post(path, { refreshToken });
  const byProxy = (path: string, headers: object = {}): Test =>
    service.get(path).set({ 'X-Remote-User': 'ivy@CORP.TEST', 'X-Proxy-Secret': PROXY_SECRET, ...headers });
  const login = { user: 'carl.customer', password: PASSWORD };
  const asReports = { applicationKey: REPORTS.applicationKey, persona: 1, userName: 'ivy.internal' };
  const disable = 'UPDATE person_directory.person SET disabled = true WHERE person_id = 1001';
  const enable = 'UPDATE person_directory.person SET disabled = false WHERE person_id = 1001';

  const CASES: Record<string, (path: string) => PromiseLike<Awaited<Test>>> = {
    'refresh Successful 200': async (path) => refresh(path, (await tokensFor()).refreshToken),
    'refresh AuthenticationFailed 401': async (path) => {
      const { refreshToken } = await tokensFor();
      return during(disable, enable, () => refresh(path, refreshToken));
    },
    'refresh RefreshThresholdExceeded 422': async (path) => {
      const { refreshToken } = await tokensFor();
      await service.database.query(
        `UPDATE auth.refresh_family SET auth_time = now() - interval '366 days'
         WHERE family_id = (SELECT family_id FROM auth.refresh_token WHERE jti = $1)`,
        [claimsOf(refreshToken).jti],
      );
      return refresh(path, refreshToken);
    },
    'refresh RefreshTokenIsNotValid 401': (path) => refresh(path, 'not-a-token'),
    'refresh UnsupportedRefreshIdentity 422': async (path) =>
      refresh(path, renamedRefreshToken(service.app, (await tokensFor()).refreshToken, 'technician:815:J')),
    'refresh TokenRevoked 401': async (path) => {
      const { accessToken, refreshToken } = await tokensFor();
      await service.put(`/auth/revocations/jti/${String(claimsOf(refreshToken).jti)}`, accessToken);
      return refresh(path, refreshToken);
    },
    'refresh InvalidRequest 400': (path) => service.post(path, {}),
    'refresh InvalidGrant 422': async (path) => {
      const { refreshToken } = await tokensFor();
      const allow = (allowed: boolean): string =>
        `UPDATE auth.application SET allow_refresh = ${String(allowed)} WHERE application_key = 'demo-backend'`;
      return during(allow(false), allow(true), () => refresh(path, refreshToken));
    },

    'password Successful 200': (path) => service.post(path, login),
    'password AuthenticationFailed 401': (path) => service.post(path, { ...login, password: 'not-the-one' }),
    'password InvalidRequest 400': (path) => service.post(path, { user: 'carl.customer' }),
    'password InvalidGrant 422': (path) => service.post(path, login).set('X-Application-Key', 'nobody'),

    'trust Successful 200': (path) => service.post(path, signed()),
    'trust AuthenticationFailed proof 401': (path) => service.post(path, signed({}, 'not-the-secret')),
    'trust AuthenticationFailed resolution 422': (path) => service.post(path, signed({ userName: 'nobody' })),
    'trust InvalidRequest 400': (path) => service.post(path, signed({ persona: 0 })),
    'trust InvalidGrant 422': (path) => service.post(path, signed(asReports, REPORTS.sharedSecret)),

    'trust-simple Successful 200': (path) => service.post(path, { ...BACKEND, ...carl }),
    'trust-simple AuthenticationFailed proof 401': (path) =>
      service.post(path, { ...BACKEND, ...carl, sharedSecret: 'not-the-secret' }),
    'trust-simple AuthenticationFailed resolution 422': (path) =>
      service.post(path, { ...BACKEND, ...carl, userName: 'nobody' }),
    'trust-simple InvalidRequest 400': (path) => service.post(path, { ...BACKEND, ...carl, persona: 32 }),
    'trust-simple InvalidGrant 422': (path) => service.post(path, { ...REPORTS, ...asReports }),

    'bearer Successful 200': async (path) => bearerOf(service.post(path), (await tokensFor()).accessToken),
    'bearer AuthenticationFailed 401': async (path) => {
      const { accessToken } = await tokensFor();
      return during(disable, enable, () => bearerOf(service.post(path), accessToken));
    },
    'bearer AccessTokenIsNotValid 401': (path) => bearerOf(service.post(path), 'not-a-token'),
    'bearer TokenRevoked 401': async (path) => {
      const { accessToken } = await tokensFor();
      await service.put(`/auth/revocations/token/${String(claimsOf(accessToken).jti)}`, accessToken);
      return bearerOf(service.post(path), accessToken);
    },
    'bearer InvalidRequest 401': (path) => service.post(path).type('json').send('{"token":'),
    'bearer InvalidGrant 401': async (path) => {
      const { accessToken } = await tokensFor();
      const allow = (enabled: boolean): string =>
        `UPDATE auth.application SET enabled = ${String(enabled)} WHERE application_key = 'demo-backend'`;
      return during(allow(false), allow(true), () => bearerOf(service.post(path), accessToken));
    },

    'openid Successful 200': (path) => callback(path, { code: 'code-of-the-provider' }),
    'openid AuthenticationFailed 401': (path) => callback(path, { error: 'access_denied' }),
    'openid InvalidRequest 400': (path) => callback(path, { state: 'unknown-state', code: 'a-code' }),
    'openid InvalidGrant 401': (path) =>
      callback(path, { code: 'a-code' }, { 'X-Application-Key': 'nobody' }),

    'code Successful 200': (path) => exchange(path),
    'code AuthenticationFailed 401': (path) => exchange(path, { code: 'unknown' }),
    'code InvalidRequest 400': (path) => exchange(path, { codeVerifier: 'short' }),
    'code InvalidGrant 401': async (path) => {
      const flows = (change: string): Promise<unknown> =>
        service.database.query(
          `UPDATE auth.application SET allowed_flows = ${change} WHERE application_key = 'demo-backend'`,
        );
      try {
        return await exchange(path, {}, () => flows(`array_remove(allowed_flows, 'code')`));
      } finally {
        await flows(`array_append(allowed_flows, 'code')`);
      }
    },

    'windows Successful 200': (path) => byProxy(path),
    'windows AuthenticationFailed 401': (path) => byProxy(path, { 'X-Proxy-Secret': 'not-the-secret' }),
    'windows InvalidGrant 401': (path) => byProxy(path, { 'X-Application-Key': 'nobody' }),
  };

  it('has a case for exactly the reachable cells', () => {
    expect(Object.keys(CASES).sort()).toEqual(
      [...CELLS.keys()].filter((name) => !UNREACHABLE.includes(name)).sort(),
    );
  });

  it.each(Object.entries(SPECIFIED))('covers exactly the specified statuses of %s', (flow, statuses) => {
    const given = [...CELLS.values()].filter((cell) => cell.flow === flow).map(({ status }) => status);
    expect([...new Set(given)].sort()).toEqual(statuses);
  });

  const requests = [...CELLS].flatMap(([name, cell]) =>
    UNREACHABLE.includes(name) ? [] : ENDPOINTS[cell.flow].map((path) => ({ name, path, ...cell })),
  );
  it.each(['nobody', 'demo-backend'])(
    'starts a sign-in whatever application is named: %s',
    async (application) => {
      const { status } = await service.get('/auth/token/sso/initiate').set('X-Application-Key', application);
      expect(status).toBe(302);
    },
  );

  it.each(requests)('$name at $path', async ({ name, path, status, reason }) => {
    await expectOutcome(Promise.resolve(CASES[name]!(path)), { status, reason });
  });
});
