import { BACKEND, REPORTS, claimsOf, expectOutcome, headerOf, startAuthService } from './auth-fixture';
import type { AuthFixture, Outcome } from './auth-fixture';

describe('trust-simple: every outcome', () => {
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

  it.each<[string, object, Outcome]>([
    ['a customer', simple(), { status: 200, reason: 0 }],
    ['a user name in another case', simple({ userName: 'CARL.Customer' }), { status: 200, reason: 0 }],
    ['matching explicit identifiers', simple({ personID: 1001 }), { status: 200, reason: 0 }],
    [
      'null for optional fields',
      simple({ name: null, serviceProviderID: null, userAccountID: null, personID: null }),
      { status: 200, reason: 0 },
    ],
    [
      'an internal user',
      simple({ persona: 1, userName: 'ivy.internal', userAccountID: 9001 }),
      { status: 200, reason: 0 },
    ],
    [
      'a technician with an account',
      simple({ persona: 4, userName: 'tess.tech', serviceProviderID: 815 }),
      { status: 200, reason: 0 },
    ],
    [
      'a technician without one',
      simple({ persona: 4, userName: 'x', serviceProviderID: 815, name: 'Jörg Müller' }),
      { status: 200, reason: 0 },
    ],
    [
      'an unknown provider',
      simple({ persona: 4, userName: 'x', serviceProviderID: 816, name: 'Jörg' }),
      { status: 422, reason: 1 },
    ],
    [
      'another provider',
      simple({ persona: 4, userName: 'tess.tech', serviceProviderID: 816 }),
      { status: 422, reason: 1 },
    ],
    [
      'a persona that a technician does not hold',
      simple({ persona: 6, userName: 'x', serviceProviderID: 815, name: 'J' }),
      { status: 422, reason: 1 },
    ],
    ['an unknown user', simple({ userName: 'nobody' }), { status: 422, reason: 1 }],
    ['a disabled user', simple({ userName: 'dora.disabled' }), { status: 422, reason: 1 }],
    ['a persona not held', simple({ persona: 1 }), { status: 422, reason: 1 }],
    ['a persona held only in part', simple({ persona: 3 }), { status: 422, reason: 1 }],
    ['another person id', simple({ personID: 1002 }), { status: 422, reason: 1 }],
    ['another user id', simple({ userAccountID: 9001 }), { status: 422, reason: 1 }],
    ['a wrong secret', simple({ sharedSecret: 'wrong' }), { status: 401, reason: 1 }],
    ['an unknown application', simple({ applicationKey: 'nobody' }), { status: 401, reason: 1 }],
    [
      'a persona the application may not have',
      { ...REPORTS, persona: 1, userName: 'ivy.internal' },
      { status: 422, reason: 8 },
    ],
    [
      'that persona for an unknown user',
      { ...REPORTS, persona: 1, userName: 'nobody' },
      { status: 422, reason: 8 },
    ],
    ['persona 0', simple({ persona: 0 }), { status: 400, reason: 7 }],
    ['unknown persona bits', simple({ persona: 32 }), { status: 400, reason: 7 }],
    ['a persona that is not a number', simple({ persona: '2' }), { status: 400, reason: 7 }],
    ['a huge persona', simple({ persona: 4294967298 }), { status: 400, reason: 7 }],
    ['a missing field', { ...BACKEND, persona: 2 }, { status: 400, reason: 7 }],
    ['an unknown field', simple({ role: 'admin' }), { status: 200, reason: 0 }],
    ['a control character', simple({ userName: 'carl\u0000' }), { status: 400, reason: 7 }],
    ['a lone surrogate', simple({ userName: 'carl\ud800' }), { status: 400, reason: 7 }],
    ['an integer out of range', simple({ personID: 2 ** 53 }), { status: 400, reason: 7 }],
    ['an array', [], { status: 400, reason: 7 }],
  ])('trust-simple with %s', async (_, body, outcome) => {
    await expectOutcome(service.post('/auth/token/trust-simple', body), outcome);
  });

  it('trust-simple issues a refresh token only to an authorized application', async () => {
    const reports = await service.post('/auth/token/trust-simple', {
      ...REPORTS,
      persona: 2,
      userName: 'carl.customer',
    });
    expect(reports.body).toMatchObject({ wasSuccessful: true, refreshToken: null });
    const backend = await service.post('/auth/token/trust-simple', simple());
    expect(headerOf(backend.body.refreshToken)).toEqual({ alg: 'HS256', kid: 'refresh-test', typ: 'rt+jwt' });
  });

  it('trust-simple grants exactly the requested persona', async () => {
    const { body } = await service.post(
      '/auth/token/trust-simple',
      simple({ persona: 4, userName: 'tess.tech' }),
    );
    expect(claimsOf(body.accessToken)).toMatchObject({
      sub: 'personid:1004',
      identityType: 'svc-personid',
      personId: 1004,
      personas: 4,
      client_id: 'demo-backend',
    });
  });
});
