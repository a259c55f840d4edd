import { describeAuthorisation } from '@platform/testing';
import { PASSWORD, agentOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { CustomersDouble } from './customers-double';

const ADMINISTRATORS = ['ivy.internal', 'gina.global'];
const OTHERS = ['carl.customer', 'olga.owner', 'rita.resident', 'tess.tech', 'lena.legacy'];
const SIGNED_IN = [...ADMINISTRATORS, ...OTHERS];

type Answers = Record<string, number>;
const each = (names: readonly string[], status: number): Answers =>
  Object.fromEntries(names.map((name) => [name, status]));
const everybody = (status: number): Answers => each(['anonymous', ...SIGNED_IN], status);
const signedIn = (status: number): Answers => ({ anonymous: 401, ...each(SIGNED_IN, status) });
const administrators = (status: number, others = 403): Answers => ({
  ...signedIn(status),
  ...each(OTHERS, others),
});

const ROUTES = '/auth/.well-known';
const SID = '7f3c1a52-7a61-4c5e-9b33-1f1f0a4c8d11';

describe('auth-service', () => {
  const customers = new CustomersDouble();
  let service: AuthFixture;
  beforeAll(async () => {
    customers.answer = { status: 200, body: '[501]' };
    service = await startAuthService({ environment: { CUSTOMERS_SERVICE_URL: await customers.start() } });
    // A session of a user other than those below.
    await service.database.query(
      `INSERT INTO auth.refresh_family (family_id, subject, application_key, flow, persona_limit, auth_time)
       VALUES ($1, 'personid:1', 'demo-backend', 'password', 2, now())`,
      [SID],
    );
  });
  afterAll(async () => {
    await service.stop();
    customers.stop();
  });

  const get = (path: string, answers: Answers) => ({ path, answers });

  describeAuthorisation({
    request: (method, path) => {
      const agent = agentOf(service.app);
      if (method === 'GET') return agent.get(path);
      if (method === 'PUT') return agent.put(path);
      return method === 'POST' ? agent.post(path) : agent.delete(path);
    },
    tokens: async () => {
      const tokens = new Map<string, string | null>([['anonymous', null]]);
      for (const user of SIGNED_IN) {
        const { body } = await service.post('/auth/token/user', { user, password: PASSWORD });
        tokens.set(user, (body as { accessToken: string }).accessToken);
      }
      return tokens;
    },
    operations: {
      'GET /.well-known/openid-configuration': get('/.well-known/openid-configuration', everybody(200)),
      'GET /.well-known/oauth-authorization-server': get(
        '/.well-known/oauth-authorization-server',
        everybody(200),
      ),
      'GET /auth/.well-known/openid-configuration': get(`${ROUTES}/openid-configuration`, everybody(200)),
      'GET /auth/.well-known/oauth-authorization-server': get(
        `${ROUTES}/oauth-authorization-server`,
        everybody(200),
      ),
      'GET /auth/.well-known/jwks.json': get(`${ROUTES}/jwks.json`, everybody(200)),
      'GET /auth/diagnostics/ping': get('/auth/diagnostics/ping', everybody(200)),
      'GET /auth/diagnostics/version': get('/auth/diagnostics/version', everybody(200)),
      'GET /health/live': get('/health/live', everybody(200)),
      'GET /health/ready': get('/health/ready', everybody(200)),
      'GET /health/startup': get('/health/startup', everybody(200)),
      // These endpoints authenticate the request's content, not its caller. These requests are empty.
      'POST /auth/token/user': get('/auth/token/user', everybody(400)),
      'POST /auth/token/refresh': get('/auth/token/refresh', everybody(400)),
      'POST /auth/token/trust': get('/auth/token/trust', everybody(400)),
      'POST /auth/token/trust-simple': get('/auth/token/trust-simple', everybody(400)),
      'POST /auth/token/code': get('/auth/token/code', everybody(400)),
      'POST /auth/token/openId': get('/auth/token/openId', everybody(400)),
      'POST /auth/token/user/AzureADLogOn': get('/auth/token/user/AzureADLogOn', everybody(400)),
      'GET /auth/token/sso/initiate': get('/auth/token/sso/initiate', everybody(400)),
      'GET /auth/token/user/winauth': get('/auth/token/user/winauth', everybody(401)),
      'POST /auth/token/bearer': get('/auth/token/bearer', signedIn(200)),
      'POST /auth/token/trustedToken': get('/auth/token/trustedToken', signedIn(200)),
      // Open to applications, not to users.
      'POST /auth/introspect': {
        path: '/auth/introspect',
        send: (request) => request.type('form').send('token=x'),
        answers: everybody(401),
      },
      'GET /auth/me': get('/auth/me', signedIn(200)),
      'GET /auth/sessions': get('/auth/sessions', signedIn(200)),
      'DELETE /auth/sessions/{sid}': get(`/auth/sessions/${SID}`, administrators(204, 404)),
      'GET /auth/revocations': get('/auth/revocations', administrators(200)),
      'GET /auth/revocations/{domain}/{identifier}': get('/auth/revocations/jti/none', signedIn(404)),
      'PUT /auth/revocations/{domain}/{identifier}': get(
        '/auth/revocations/client_id/nobody',
        administrators(200),
      ),
      'GET /auth/roles/{identifier}/members': get(
        '/auth/roles/SecurityEditor~~GroupName~~Operations/members',
        administrators(200),
      ),
      'GET /auth/accessPoints/{identifier}/hasAccess': get(
        '/auth/accessPoints/SecurityEditor~~AccessPointName~~Scheduling/hasAccess',
        administrators(200),
      ),
      'GET /auth/buid/{businessUnitId}/facility-access': get('/auth/buid/77/facility-access', signedIn(200)),
      'GET /auth/buid': {
        path: '/auth/buid?plt=PLT-77',
        send: (request) => {
          customers.answer = { status: 200, body: '77' };
          return request;
        },
        answers: signedIn(200),
      },
      'POST /auth/logout': get('/auth/logout', signedIn(204)),
    },
  });
});
