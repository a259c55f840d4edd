import { apiDocument } from '@platform/testing';
import type { Test } from 'supertest';
import { BACKEND, PASSWORD, agentOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

const NUL = '\u0000';
const CARL = { persona: 2, userName: 'carl.customer' };
const CODE = { applicationKey: 'demo-backend', code: 'x', codeVerifier: 'v'.repeat(43) };

describe('U+0000', () => {
  let service: AuthFixture;
  let token = '';
  beforeAll(async () => {
    service = await startAuthService();
    const login = { user: 'ivy.internal', password: PASSWORD };
    ({ accessToken: token } = (await service.post('/auth/token/user', login)).body as {
      accessToken: string;
    });
  });
  afterAll(() => service.stop());

  const basic = (user: string): string => `Basic ${Buffer.from(user).toString('base64')}`;

  it.each<[string, object]>([
    ['/auth/token/user', { user: `carl${NUL}`, password: PASSWORD }],
    ['/auth/token/user', { user: 'carl', password: NUL }],
    ['/auth/token/user', { user: 'carl', password: 'x', other: [NUL] }],
    ['/auth/token/trust-simple', { ...BACKEND, ...CARL, applicationKey: NUL }],
    ['/auth/token/trust-simple', { ...BACKEND, ...CARL, sharedSecret: NUL }],
    ['/auth/token/trust-simple', { ...BACKEND, ...CARL, name: NUL }],
    ['/auth/token/code', { ...CODE, code: NUL }],
    ['/auth/token/code', { ...CODE, applicationKey: NUL }],
    ['/auth/token/refresh', { refreshToken: NUL }],
    ['/auth/token/trustedToken', { token: NUL }],
  ])('in a body for %s (%j) is an invalid request', async (path, body) => {
    const { status, body: answer } = await service.post(path, body);
    expect([status, answer.rejectionReason]).toEqual([path.endsWith('trustedToken') ? 401 : 400, 7]);
  });

  it.each([
    ['/auth/token/sso/initiate?applicationKey=a%00&returnUrl=https://x.example/', 400],
    ['/auth/token/sso/initiate?applicationKey=demo-backend&returnUrl=%00', 400],
    ['/auth/token/sso/initiate?applicationKey=demo-backend&returnUrl=x&state=%00', 400],
    ['/auth/token/user/winauth?%00=1', 400],
    ['/auth/revocations?minDate=%00', 400],
    ['/auth/revocations/sub/%00', 400],
    ['/auth/revocations/jti/a%00b', 400],
    ['/auth/revocations?domains=all&cursor=%00', 400],
    ['/auth/sessions?domain=sub&identifier=%00', 400],
    ['/auth/roles/SecurityEditor~~GroupName~~%00/members', 400],
    ['/auth/accessPoints/SecurityEditor~~AccessPointName~~%00/hasAccess', 400],
    ['/nothing/%00', 400],
  ])('in %s is an invalid request', async (path, status) => {
    expect((await service.get(path, token)).status).toBe(status);
  });

  it.each(['sub', 'jti', 'sid', 'svc-personid', 'client_id'])(
    'in an identifier of %s is an invalid request',
    async (domain) => {
      expect((await service.put(`/auth/revocations/${domain}/%00`, token)).status).toBe(400);
    },
  );

  it.each<[string, (sent: Test) => Test]>([
    ['a user', (sent) => sent.set('Authorization', basic(`demo${NUL}:secret`)).send({ token: 'x' })],
    ['an encoded user', (sent) => sent.set('Authorization', basic('demo%00:secret')).send({ token: 'x' })],
    ['a secret', (sent) => sent.set('Authorization', basic(`demo-backend:${NUL}`)).send({ token: 'x' })],
  ])('in %s of introspection proves nothing', async (_, send) => {
    expect((await send(service.post('/auth/introspect').type('form'))).status).toBe(401);
  });

  it('in the form of introspection is an invalid request', async () => {
    const sent = service
      .post('/auth/introspect')
      .type('form')
      .auth(BACKEND.applicationKey, BACKEND.sharedSecret);
    expect((await sent.send('token=%00')).status).toBe(400);
  });

  it('in the callback of a provider is an invalid request', async () => {
    const { status, body } = await service.post('/auth/token/openId').type('form').send('state=%00&code=x');
    expect([status, body.rejectionReason]).toEqual([400, 7]);
  });
});

/**
 * Returns the contents of all tables of the service as one text, except the snapshots, which change by
 * themselves.
 */
async function contents({ database }: AuthFixture): Promise<string> {
  const tables = await database.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
     WHERE schemaname IN ('auth', 'person_directory', 'internal_legacy', 'service_providers')
       AND tablename <> 'recorded_snapshot' ORDER BY 1`,
  );
  const texts: string[] = [];
  for (const { name } of tables) {
    const [row] = await database.query<{ text: string | null }>(
      `SELECT string_agg(t::text, E'\\n' ORDER BY t::text) AS text FROM ${name} AS t`,
    );
    texts.push(`${name}: ${row?.text ?? ''}`);
  }
  return texts.join('\n');
}

describe('HEAD', () => {
  const PARAMETERS: Record<string, string> = {
    domain: 'sub',
    identifier: 'SecurityEditor~~GroupName~~Dispatch',
    businessUnitId: '77',
  };
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService({
      environment: { TOKEN_RATE_LIMIT_PER_ADDRESS: '1000', TOKEN_RATE_LIMIT_PER_APPLICATION: '1000' },
    });
  });
  afterAll(() => service.stop());

  it('changes nothing on any route', async () => {
    const login = { user: 'ivy.internal', password: PASSWORD };
    const { body } = await service.post('/auth/token/user', login).expect(200);
    const before = await contents(service);
    const { paths: documented } = apiDocument('auth-service');
    const paths = Object.keys(documented).filter((path) => 'get' in documented[path]!);
    expect(paths).toEqual(expect.arrayContaining(['/auth/token/sso/initiate', '/auth/token/user/winauth']));
    for (const path of paths) {
      const url = path.replace(/\{(\w+)\}/g, (_, name: string) => PARAMETERS[name] ?? 'x');
      const sent = agentOf(service.app)
        .head(url)
        .set('Authorization', `Bearer ${body.accessToken as string}`);
      expect((await sent.set('X-Application-Key', 'demo-backend')).status).toBeLessThan(504);
    }
    expect(await contents(service)).toBe(before);
  });
});
