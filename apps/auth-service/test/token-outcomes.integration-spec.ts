import { BACKEND, PASSWORD, bearerOf, claimsOf, expectOutcome, startAuthService } from './auth-fixture';
import type { AuthFixture, Outcome } from './auth-fixture';

describe('user and bearer: every outcome, and unreadable requests', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  const simple = (overrides: object = {}): object => ({
    ...BACKEND,
    persona: 2,
    userName: 'carl.customer',
    ...overrides,
  });

  const login = (overrides: object = {}): object => ({
    user: 'ivy.internal',
    password: PASSWORD,
    ...overrides,
  });

  it.each<[string, string, object, Outcome]>([
    ['the right password', '', login(), { status: 200, reason: 0 }],
    ['a wrong password', '', login({ password: 'wrong' }), { status: 401, reason: 1 }],
    ['an unknown user', '', login({ user: 'nobody' }), { status: 401, reason: 1 }],
    ['a disabled user', '', login({ user: 'dora.disabled' }), { status: 401, reason: 1 }],
    ['a user without a password', '', login({ user: 'svc.platform' }), { status: 401, reason: 1 }],
    ['a request for InternalPartner', '?grantAsInternalPartner=true', login(), { status: 200, reason: 0 }],
    [
      'a malformed request for InternalPartner',
      '?grantAsInternalPartner=perhaps',
      login(),
      { status: 400, reason: 7 },
    ],
    [
      'a repeated request for InternalPartner',
      '?grantAsInternalPartner=true&grantAsInternalPartner=false',
      login(),
      { status: 400, reason: 7 },
    ],
    ['no password', '', { user: 'ivy.internal' }, { status: 400, reason: 7 }],
    ['an unknown field', '', login({ admin: true }), { status: 200, reason: 0 }],
    ['a number for a password', '', login({ password: 1 }), { status: 400, reason: 7 }],
    ['a control character', '', login({ user: 'ivy\u0000' }), { status: 400, reason: 7 }],
  ])('user with %s', async (_, query, body, outcome) => {
    await expectOutcome(service.post(`/auth/token/user${query}`, body), outcome);
  });

  it.each<[string, string, Outcome]>([
    ['an application that may not have the persona', 'demo-reports', { status: 422, reason: 8 }],
    ['an unknown application', 'nobody', { status: 422, reason: 8 }],
    ['an authorized application', 'demo-backend', { status: 200, reason: 0 }],
  ])('user through %s', async (_, key, outcome) => {
    await expectOutcome(service.post('/auth/token/user', login()).set('X-Application-Key', key), outcome);
  });

  it('returns the same body for unknown, wrong, disabled and passwordless users', async () => {
    const users = [
      { user: 'nobody' },
      { password: 'wrong-again' },
      { user: 'dora.disabled' },
      { user: 'svc.platform' },
    ];
    const bodies = await Promise.all(
      users.map(async (user) => (await service.post('/auth/token/user', login(user))).text),
    );
    expect(new Set(bodies).size).toBe(1);
  });

  it('does not grant InternalPartner to a user who is not eligible', async () => {
    const { status, body } = await service.post(
      '/auth/token/user?grantAsInternalPartner=true',
      login({ user: 'carl.customer' }),
    );
    expect(status).toBe(200);
    expect(claimsOf(body.accessToken)).toMatchObject({
      sub: 'personid:1001',
      personas: 2,
      facilities: [501, 502],
    });
  });

  it('includes roles and groups, also inherited ones, in the claims', async () => {
    const ivy = await service.post('/auth/token/user', login());
    expect(claimsOf(ivy.body.accessToken)).toMatchObject({
      sub: 'userid:9001',
      identityType: 'internal-legacy',
      userId: 9001,
      personas: 1,
      groups: ['Dispatch', 'NightShift', 'Operations'],
    });
    const gina = await service.post('/auth/token/user', login({ user: 'gina.global' }));
    expect(claimsOf(gina.body.accessToken)).toMatchObject({
      roles: ['CustomerGlobalAdministrator'],
      personas: 2,
    });
  });

  it.each<[string, string | undefined]>([
    ['no header', undefined],
    ['another scheme', 'Basic aXZ5OnB3'],
    ['no token', 'Bearer '],
    ['rubbish', 'Bearer rubbish'],
    ['two tokens', 'Bearer a b'],
  ])('bearer with %s is reason 2', async (_, authorization) => {
    const sent = service.post('/auth/token/bearer');
    if (authorization !== undefined) void sent.set('Authorization', authorization);
    await expectOutcome(sent, { status: 401, reason: 2 });
  });

  it('bearer exchanges a token, keeps auth_time and never adds personas', async () => {
    const first = await service.post('/auth/token/trust-simple', simple());
    const sent = bearerOf(service.post('/auth/token/bearer'), first.body.accessToken);
    const { status, body } = await sent;
    expect(status).toBe(200);
    const [before, after] = [claimsOf(first.body.accessToken), claimsOf(body.accessToken)];
    expect(after).toMatchObject({
      sub: before.sub,
      personas: 2,
      auth_time: before.auth_time,
      client_id: 'demo-backend',
    });
    expect(after.jti).not.toBe(before.jti);
    expect(body.refreshToken).toEqual(expect.any(String));
  });

  it('bearer exchanges the token of a technician without an account', async () => {
    const first = await service.post(
      '/auth/token/trust-simple',
      simple({ persona: 4, userName: 'x', serviceProviderID: 815, name: 'Jörg: Müller' }),
    );
    const { status, body } = await bearerOf(service.post('/auth/token/bearer'), first.body.accessToken);
    expect(status).toBe(200);
    expect(claimsOf(body.accessToken)).toMatchObject({
      sub: 'technician:815:Jörg: Müller',
      identityType: 'service-provider',
      name: 'Jörg: Müller',
      personas: 4,
    });
  });

  it('bearer accepts neither a refresh token, nor the override unless enabled', async () => {
    const { body } = await service.post('/auth/token/trust-simple', simple());
    await expectOutcome(bearerOf(service.post('/auth/token/bearer'), body.refreshToken), {
      status: 401,
      reason: 2,
    });
    await expectOutcome(
      service.post(`/auth/token/bearer?bearerTokenOverride=${body.accessToken as string}`),
      { status: 401, reason: 2 },
    );
  });

  it.each<[string, number]>([
    ['refresh', 400],
    ['user', 400],
    ['trust', 400],
    ['trust-simple', 400],
    ['code', 400],
    ['bearer', 401],
  ])('%s returns a TokenResponse with %i for an unreadable request', async (path, status) => {
    const outcome = { status, reason: 7 };
    const send = (type: string, body: string): Promise<never> =>
      service.post(`/auth/token/${path}`).set('Content-Type', type).send(body) as unknown as Promise<never>;
    await expectOutcome(send('application/json', '{"user":'), outcome);
    await expectOutcome(send('application/json', '\u00ff'.repeat(70_000)), outcome);
    await expectOutcome(send('text/plain', 'hello'), outcome);
    await expectOutcome(send('application/json', `${'['.repeat(5_000)}${']'.repeat(5_000)}`), outcome);
  });

  it('returns problems for unknown routes and methods below /auth/token', async () => {
    const unknown = await service.post('/auth/token/unknown', {});
    expect([unknown.status, unknown.type]).toEqual([404, 'application/problem+json']);
    const wrongMethod = await service.get('/auth/token/user');
    expect([wrongMethod.status, wrongMethod.headers.allow]).toEqual([405, 'POST']);
  });

  it.each(['/auth/token/%75ser', '/auth/t%6Fken/user'])(
    'returns a TokenResponse for wrong credentials if the path is written %s',
    async (path) => {
      await expectOutcome(service.post(path, login({ password: 'wrong' })), { status: 401, reason: 1 });
      await expectOutcome(service.post(path, {}), { status: 400, reason: 7 });
    },
  );

  it('matches routes in any letter case and with a trailing slash', async () => {
    await expectOutcome(service.post('/Auth/Token/Trust-Simple/', simple()), { status: 200, reason: 0 });
  });
});
