import { ManualClock, SYSTEM_CLOCK } from '@platform/time';
import { BACKEND, bearerOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { CustomersDouble } from './customers-double';

describe('business units', () => {
  const clock = new ManualClock(SYSTEM_CLOCK.now());
  const customers = new CustomersDouble();
  let service: AuthFixture;
  let token: string;
  beforeAll(async () => {
    const url = await customers.start();
    service = await startAuthService({
      clock,
      // Long enough for a response on a busy machine, because a time-out would be retried and counted.
      environment: { CUSTOMERS_SERVICE_URL: url, CUSTOMERS_SERVICE_TIMEOUT_MS: '1000' },
    });
    const { body } = await service.post('/auth/token/trust-simple', {
      ...BACKEND,
      persona: 2,
      userName: 'carl.customer',
    });
    token = body.accessToken as string;
  });
  beforeEach(() => {
    customers.requests = [];
  });
  afterAll(async () => {
    await service.stop();
    customers.stop();
  });

  it('requests the facilities of a business unit with the caller’s token', async () => {
    customers.answer = { status: 200, body: '[501,502]' };
    const { status, body, headers } = await service.get('/auth/buid/77/facility-access', token);
    expect([status, body]).toEqual([200, [501, 502]]);
    expect(headers.deprecation).toMatch(/^@\d+$/);
    expect(customers.requests).toEqual([
      { url: '/business-units/77/facility-access', authorization: `Bearer ${token}` },
    ]);
  });

  it('requests the business unit of a PLT code and returns one bare integer', async () => {
    customers.answer = { status: 200, body: '77' };
    const { status, text, type } = await service.get('/auth/buid?plt=PLT-77%26x', token);
    expect([status, text, type]).toEqual([200, '77', 'application/json']);
    expect(customers.requests[0]?.url).toBe('/business-units?plt=PLT-77%26x');
  });

  it.each([
    [410, 404],
    [422, 422],
    [429, 429],
    [405, 502],
    [408, 502],
    [418, 502],
  ])(
    'does not count %i, returned as %i, as a failure: no retry, no open circuit',
    async (status, returned) => {
      customers.answer = { status, body: '{}' };
      for (let turn = 1; turn <= 7; turn += 1) {
        const sent = await service.get('/auth/buid/78/facility-access', token);
        expect([sent.status, sent.type]).toEqual([returned, 'application/problem+json']);
        if (returned === 429) expect(sent.headers['retry-after']).toBe('1');
        expect(customers.requests).toHaveLength(turn);
      }
      expect((await service.get('/auth/buid?plt=PLT-78', token)).status).toBe(returned);
      customers.answer = { status: 200, body: '[501]' };
      expect((await service.get('/auth/buid/78/facility-access', token)).body).toEqual([501]);
    },
  );

  it.each([400, 401, 403, 404])('passes %i on without a retry', async (status) => {
    customers.answer = { status, body: '{}' };
    expect((await service.get('/auth/buid/78/facility-access', token)).status).toBe(status);
    expect(customers.requests).toHaveLength(1);
  });

  it.each<[string, CustomersDouble['answer'], number, number]>([
    ['a failure', { status: 500, body: '{}' }, 502, 3],
    ['no response', 'silence', 503, 3],
    ['something that is not JSON', { status: 200, body: '<html>' }, 502, 1],
    ['JSON of another shape', { status: 200, body: '{"facilities":[]}' }, 502, 1],
  ])('returns a problem for %s', async (_, answer, status, requests) => {
    customers.answer = { status: 200, body: '[]' };
    await service.get('/auth/buid/77/facility-access', token);
    customers.requests = [];
    customers.answer = answer;
    const sent = await service.get('/auth/buid/77/facility-access', token);
    expect([sent.status, sent.type]).toEqual([status, 'application/problem+json']);
    expect(customers.requests).toHaveLength(requests);
    if (requests === 1) expect((await service.get('/auth/buid?plt=PLT-77', token)).status).toBe(status);
  });

  it('opens the circuit after five failures in a row, and probes again ten seconds later', async () => {
    customers.answer = { status: 200, body: '[]' };
    await service.get('/auth/buid/1/facility-access', token);
    customers.answer = { status: 503, body: '{}' };
    customers.requests = [];
    for (let n = 0; n < 4; n += 1)
      expect((await service.get('/auth/buid/1/facility-access', token)).status).toBeGreaterThan(501);
    expect(customers.requests).toHaveLength(5);
    clock.advance(10_000);
    customers.answer = { status: 200, body: '[]' };
    expect((await service.get('/auth/buid/1/facility-access', token)).status).toBe(200);
  });

  it.each(['silence', { status: 500, body: '{}' }] as const)(
    'keeps requesting other business units while one gets %j',
    async (answer) => {
      customers.answer = { status: 200, body: '[501]' };
      customers.exceptions.set('/business-units/13/facility-access', answer);
      for (let n = 0; n < 3; n += 1)
        expect((await service.get('/auth/buid/13/facility-access', token)).status).toBeGreaterThan(501);
      expect(customers.requests).toHaveLength(5);
      expect((await service.get('/auth/buid/77/facility-access', token)).body).toEqual([501]);
      customers.exceptions.clear();
      expect((await service.get('/auth/buid/13/facility-access', token)).status).toBe(503);
      clock.advance(10_000);
      expect((await service.get('/auth/buid/13/facility-access', token)).body).toEqual([501]);
    },
  );

  it.each([
    '/auth/buid/abc/facility-access',
    '/auth/buid/1.5/facility-access',
    '/auth/buid',
    '/auth/buid?plt=',
    '/auth/buid?plt=a&plt=b',
  ])('refuses %s', async (path) => {
    expect((await service.get(path, token)).status).toBe(400);
    expect((await service.get(path)).status).toBe(401);
    expect(customers.requests).toEqual([]);
  });

  it('supports the obsolete path of the bearer exchange, and marks it as deprecated', async () => {
    const byHeader = await bearerOf(service.post('/auth/token/trustedToken'), token);
    const byBody = await service.post('/auth/token/trustedToken', { token });
    for (const { status, headers, body } of [byHeader, byBody]) {
      expect([status, body.wasSuccessful]).toEqual([200, true]);
      expect(headers.deprecation).toMatch(/^@\d+$/);
      expect(headers.link).toBe('</auth/token/bearer>; rel="successor-version"');
    }
    const without = await service.post('/auth/token/trustedToken');
    expect([without.status, without.body.rejectionReason]).toEqual([401, 2]);
  });
});
