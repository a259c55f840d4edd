import { BACKEND, claimsOf, startAuthService, startReplica, agentOf, bearerOf } from './auth-fixture';
import type { AuthFixture, Replica } from './auth-fixture';
import { CustomersDouble } from './customers-double';
import { OPENID_CLIENT } from './identity-provider-process';
import { MisbehavingProvider } from './misbehaving-provider';

/**
 * The specified endpoints except the token flows, with their statuses. The token flows have their own table
 * in reason-table.integration-spec.ts. Source: authentication spec, Endpoints.
 */
const SPECIFIED: Record<string, readonly number[]> = {
  'GET /auth/token/sso/initiate': [302],
  'GET /auth/roles/{identifier}/members': [200, 400, 401, 403],
  'GET /auth/accessPoints/{identifier}/hasAccess': [200, 400, 401, 403],
  'GET /auth/revocations': [200, 400, 401, 403],
  'GET /auth/revocations/{domain}/{identifier}': [200, 400, 401, 403, 404],
  'PUT /auth/revocations/{domain}/{identifier}': [200, 400, 401, 403],
  'GET /auth/diagnostics/ping': [200],
  'GET /auth/diagnostics/version': [200],
  'GET /auth/buid/{businessUnitId}/facility-access': [200, 400, 401, 403, 404],
  'GET /auth/buid': [200, 400, 401, 403, 404],
};

const TOKEN_FLOWS = [
  'POST /auth/token/refresh',
  'POST /auth/token/user',
  'POST /auth/token/trust',
  'POST /auth/token/trust-simple',
  'POST /auth/token/bearer',
  'POST /auth/token/openId',
  'GET /auth/token/user/winauth',
  'POST /auth/token/user/AzureADLogOn',
  'POST /auth/token/trustedToken',
];

/** Additions to the specification; see docs/spec-gaps.md. */
const ADDITIVE = [
  'POST /auth/token/code',
  'GET /auth/.well-known/jwks.json',
  'GET /auth/me',
  'GET /.well-known/openid-configuration',
  'GET /.well-known/oauth-authorization-server',
  'GET /auth/.well-known/openid-configuration',
  'GET /auth/.well-known/oauth-authorization-server',
  'POST /auth/introspect',
  'POST /auth/logout',
  'GET /auth/sessions',
  'DELETE /auth/sessions/{sid}',
  'GET /health/live',
  'GET /health/ready',
  'GET /health/startup',
];

/** Specified statuses that cannot occur. */
const NEVER = new Map([
  // In the specification, "authorized" means that the caller has a valid token. A caller without one gets
  // 401.
  ['GET /auth/revocations/{domain}/{identifier} 403', 'any valid token may read one revocation'],
]);

describe('the endpoints of the specification', () => {
  const customers = new CustomersDouble();
  let service: AuthFixture;
  let strict: Replica & { close: () => Promise<void> };
  let provider: MisbehavingProvider;
  const tokens = { ivy: '', gina: '', carl: '' };
  beforeAll(async () => {
    provider = await MisbehavingProvider.start();
    const environment = {
      ...OPENID_CLIENT,
      OPENID_ISSUER: provider.issuer,
      OPENID_HTTP_ALLOWED: 'true',
      CUSTOMERS_SERVICE_URL: await customers.start(),
    };
    service = await startAuthService({ environment });
    strict = await startReplica(service.database.url, {
      environment: { REVOCATION_WRITE_POLICY: 'self-or-admin' },
    });
    tokens.ivy = await tokenOf(1, 'ivy.internal');
    tokens.gina = await tokenOf(2, 'gina.global');
    tokens.carl = await tokenOf(2, 'carl.customer');
  });
  afterAll(async () => {
    await strict.close();
    await service.stop();
    await provider.stop();
    customers.stop();
  });

  async function tokenOf(persona: number, userName: string): Promise<string> {
    const { body } = await service.post('/auth/token/trust-simple', { ...BACKEND, persona, userName });
    return body.accessToken as string;
  }

  type Answered = PromiseLike<{ status: number; type: string; text: string; body: unknown }>;
  const get = (path: string, token?: string): Answered => service.get(path, token);
  const put = (path: string, token?: string): Answered => service.put(path, token);

  const members = (identifier: string): string => `/auth/roles/${identifier}/members`;
  const access = (identifier: string): string => `/auth/accessPoints/${identifier}/hasAccess`;
  const OPERATIONS = 'SecurityEditor~~GroupName~~Operations';
  const SCHEDULING = 'SecurityEditor~~AccessPointName~~Scheduling';
  const REVOCATION = '/auth/revocations/svc-personid/4711';
  const proxied = (status: number, path: string, body = '{}'): Answered => {
    customers.answer = { status, body };
    return get(path, tokens.carl);
  };
  const FACILITIES = '/auth/buid/77/facility-access';
  const BY_PLT = '/auth/buid?plt=PLT-77';

  const CASES: Record<string, () => Answered> = {
    'GET /auth/token/sso/initiate 302': () => get('/auth/token/sso/initiate'),
    'GET /auth/roles/{identifier}/members 200': () => get(members(OPERATIONS), tokens.gina),
    'GET /auth/roles/{identifier}/members 400': () => get(members('Operations'), tokens.ivy),
    'GET /auth/roles/{identifier}/members 401': () => get(members(OPERATIONS)),
    'GET /auth/roles/{identifier}/members 403': () => get(members(OPERATIONS), tokens.carl),
    'GET /auth/accessPoints/{identifier}/hasAccess 200': () => get(access(SCHEDULING), tokens.ivy),
    'GET /auth/accessPoints/{identifier}/hasAccess 400': () => get(access('Scheduling'), tokens.ivy),
    'GET /auth/accessPoints/{identifier}/hasAccess 401': () => get(access(SCHEDULING)),
    'GET /auth/accessPoints/{identifier}/hasAccess 403': () => get(access(SCHEDULING), tokens.carl),
    'GET /auth/revocations 200': () => get('/auth/revocations', tokens.gina),
    'GET /auth/revocations 400': () => get('/auth/revocations?minDate=soon', tokens.ivy),
    'GET /auth/revocations 401': () => get('/auth/revocations'),
    'GET /auth/revocations 403': () => get('/auth/revocations', tokens.carl),
    'GET /auth/revocations/{domain}/{identifier} 200': async () => {
      await put(REVOCATION, tokens.carl);
      return get(REVOCATION, tokens.carl);
    },
    'GET /auth/revocations/{domain}/{identifier} 400': () => get('/auth/revocations/person/1', tokens.carl),
    'GET /auth/revocations/{domain}/{identifier} 401': () => get(REVOCATION),
    'GET /auth/revocations/{domain}/{identifier} 404': () => get('/auth/revocations/jti/none', tokens.carl),
    'PUT /auth/revocations/{domain}/{identifier} 200': () => put(REVOCATION, tokens.carl),
    'PUT /auth/revocations/{domain}/{identifier} 400': () => put('/auth/revocations/person/1', tokens.carl),
    'PUT /auth/revocations/{domain}/{identifier} 401': () => put(REVOCATION),
    // Only with REVOCATION_WRITE_POLICY=self-or-admin: by default any valid token may revoke.
    'PUT /auth/revocations/{domain}/{identifier} 403': () =>
      bearerOf(agentOf(strict).put(REVOCATION), tokens.carl),
    'GET /auth/diagnostics/ping 200': () => get('/auth/diagnostics/ping'),
    'GET /auth/diagnostics/version 200': () => get('/auth/diagnostics/version'),
    'GET /auth/buid/{businessUnitId}/facility-access 200': () => proxied(200, FACILITIES, '[501]'),
    'GET /auth/buid/{businessUnitId}/facility-access 400': () =>
      get('/auth/buid/one/facility-access', tokens.carl),
    'GET /auth/buid/{businessUnitId}/facility-access 401': () => get(FACILITIES),
    'GET /auth/buid/{businessUnitId}/facility-access 403': () => proxied(403, FACILITIES),
    'GET /auth/buid/{businessUnitId}/facility-access 404': () => proxied(404, FACILITIES),
    'GET /auth/buid 200': () => proxied(200, BY_PLT, '77'),
    'GET /auth/buid 400': () => get('/auth/buid', tokens.carl),
    'GET /auth/buid 401': () => get(BY_PLT),
    'GET /auth/buid 403': () => proxied(403, BY_PLT),
    'GET /auth/buid 404': () => proxied(404, BY_PLT),
  };

  it('are the routes of the service, together with the documented additions', async () => {
    const { body } = await service.get('/openapi.json');
    const routes = Object.entries(body.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(routes.sort()).toEqual([...Object.keys(SPECIFIED), ...TOKEN_FLOWS, ...ADDITIVE].sort());
  });

  it('have a case for every status', () => {
    const cells = Object.entries(SPECIFIED).flatMap(([endpoint, statuses]) =>
      statuses.map((status) => `${endpoint} ${status}`),
    );
    expect([...Object.keys(CASES), ...NEVER.keys()].sort()).toEqual(cells.sort());
  });

  it.each(Object.keys(CASES))('%s', async (name) => {
    const { status, type, body } = await CASES[name]!();
    expect(String(status)).toBe(name.split(' ').at(-1));
    if (status < 400) return;
    expect(type).toBe('application/problem+json');
    expect(body).toMatchObject({ status, title: expect.any(String), traceId: expect.any(String) });
  });

  it.each([
    ['InternalPartner', 1, 'ivy.internal'],
    ['Customer', 2, 'carl.customer'],
    ['ServiceProvider', 4, 'tess.tech'],
    ['Resident', 8, 'rita.resident'],
    ['Owner', 16, 'olga.owner'],
  ])('issue tokens with the persona %s', async (_, persona, userName) => {
    expect(claimsOf(await tokenOf(persona, userName)).personas).toBe(persona);
  });
});
