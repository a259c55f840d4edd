import { eventually } from '@platform/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import request from 'supertest';
import { BACKEND, bearerOf, claimsOf, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Revocation {
  domain: string;
  identifier: string;
  revocationDate: string;
}

describe('revocations', () => {
  let service: AuthFixture;
  let strictReplica: NestFastifyApplication;
  let ivy: string;
  let carl: string;
  beforeAll(async () => {
    service = await startAuthService();
    strictReplica = await startReplica(service.database.url, {
      environment: { REVOCATION_WRITE_POLICY: 'self-or-admin' },
    });
    ivy = await tokenOf(1, 'ivy.internal');
    carl = await tokenOf(2, 'carl.customer');
  });
  afterAll(async () => {
    await strictReplica.close();
    await service.stop();
  });

  async function tokenOf(persona: number, userName: string): Promise<string> {
    const { body } = await service.post('/auth/token/trust-simple', { ...BACKEND, persona, userName });
    return body.accessToken as string;
  }

  it('require a bearer token everywhere, and an internal administrator for the list', async () => {
    expect((await service.get('/auth/revocations')).status).toBe(401);
    expect((await service.get('/auth/revocations/jti/x')).status).toBe(401);
    expect((await service.put('/auth/revocations/jti/x')).status).toBe(401);
    const forbidden = await service.get('/auth/revocations', carl);
    expect([forbidden.status, forbidden.type]).toEqual([403, 'application/problem+json']);
    expect((await service.get('/auth/revocations', await tokenOf(2, 'gina.global'))).status).toBe(200);
  });

  it('return with the list the time of the clock that dates revocations', async () => {
    const presentOf = async (query: string): Promise<string> =>
      String((await service.get(`/auth/revocations${query}`, ivy)).headers['revocations-as-of']);
    const before = await presentOf('');
    await service.put('/auth/revocations/svc-personid/778', carl);
    const { revocationDate } = (await service.get('/auth/revocations/svc-personid/778', carl))
      .body as Revocation;
    const after = await presentOf('?limit=1');
    const instants = [before, revocationDate, after].map((text) => Date.parse(text));
    expect(instants).toEqual(instants.toSorted((one, other) => one - other));
  });

  it('can be set, shown and renewed, and keep the last caller', async () => {
    const missing = await service.get('/auth/revocations/svc-personid/777', carl);
    expect([missing.status, missing.type]).toEqual([404, 'application/problem+json']);
    const put = await service.put('/auth/revocations/svc-personid/777', carl);
    expect([put.status, put.text]).toEqual([200, '']);
    const first = (await service.get('/auth/revocations/svc-personid/777', carl)).body as Revocation;
    expect(first).toEqual({
      domain: 'svc-personid',
      identifier: '777',
      revocationDate: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/),
    });
    await service.put('/auth/revocations/svc-personid/777', ivy);
    const second = (await service.get('/auth/revocations/svc-personid/777', carl)).body as Revocation;
    expect(Date.parse(second.revocationDate)).toBeGreaterThan(Date.parse(first.revocationDate));
    const rows = await service.database.query(
      'SELECT revoked_by_subject FROM auth.revocations WHERE identifier = $1',
      ['777'],
    );
    expect(rows).toEqual([{ revoked_by_subject: 'userid:9001' }]);
  });

  it('accept token as an alias of jti, and keep the letter case of identifiers', async () => {
    await service.put('/auth/revocations/token/Some-Token', carl);
    expect((await service.get('/auth/revocations/jti/Some-Token', carl)).body).toMatchObject({
      domain: 'jti',
      identifier: 'Some-Token',
    });
    expect((await service.get('/auth/revocations/token/some-token', carl)).status).toBe(404);
  });

  it.each([
    '/auth/revocations/person/1',
    '/auth/revocations/svc-personid/01',
    '/auth/revocations/svc-personid/abc',
    '/auth/revocations/internal-legacy/-1',
    '/auth/revocations/jti/a%00b',
    `/auth/revocations/jti/${'x'.repeat(300)}`,
  ])('are refused for %s', async (path) => {
    expect((await service.get(path, carl)).status).toBe(400);
    expect((await service.put(path, carl)).status).toBe(400);
  });

  it('accept a PUT with an empty JSON body', async () => {
    const put = await service
      .put('/auth/revocations/jti/empty-body', carl)
      .set('Content-Type', 'application/json');
    expect(put.status).toBe(200);
  });

  it('are listed strictly after minDate, oldest first, even if a plus became a space', async () => {
    const dates = [
      '2019-01-01T00:00:00Z',
      '2019-01-02T00:00:00Z',
      '2019-01-03T00:00:00Z',
      '2018-11-18T00:00:00Z',
    ];
    for (const [n, date] of dates.entries()) {
      await service.database.query(`INSERT INTO auth.revocations VALUES ('jti', $1, $2, 'test', null)`, [
        `old-${String(n)}`,
        date,
      ]);
    }
    const list = async (query: string): Promise<string[]> => {
      const { status, body } = await service.get(`/auth/revocations${query}`, ivy);
      expect(status).toBe(200);
      return (body as Revocation[])
        .map(({ identifier }) => identifier)
        .filter((identifier) => identifier.startsWith('old-'));
    };
    expect(await list('')).toEqual(['old-0', 'old-1', 'old-2']);
    expect(await list('?minDate=2019-01-02T00:00:00Z')).toEqual(['old-2']);
    expect(await list('?minDate=2019-01-02T02:00:00+02:00')).toEqual(['old-2']);
    expect(await list('?minDate=2019-01-02T01:59:59%2B02:00')).toEqual(['old-1', 'old-2']);
    expect(await list('?minDate=2017-01-01')).toEqual(['old-3', 'old-0', 'old-1', 'old-2']);
    expect((await service.get('/auth/revocations?minDate=soon', ivy)).status).toBe(400);
    expect((await service.get('/auth/revocations?minDate=0000-01-01', ivy)).status).toBe(200);
  });

  it('are paged on request', async () => {
    const whole = (await service.get('/auth/revocations?minDate=2017-01-01', ivy)).body as Revocation[];
    const paged: Revocation[] = [];
    let next: string | undefined = '/auth/revocations?minDate=2017-01-01&limit=2';
    while (next !== undefined) {
      const page = await service.get(next, ivy);
      expect((page.body as Revocation[]).length).toBeLessThanOrEqual(2);
      paged.push(...(page.body as Revocation[]));
      next = /^<([^>]+)>; rel="next"$/.exec(String(page.headers.link))?.[1];
    }
    expect(paged).toEqual(whole);
    expect((await service.get('/auth/revocations?limit=2&cursor=forged', ivy)).status).toBe(400);
    expect((await service.get('/auth/revocations?limit=0', ivy)).status).toBe(400);
  });

  it('are all listed at once without a limit, however many there are', async () => {
    await service.database.query(
      `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject)
       SELECT 'jti', 'many-' || n, now() - interval '2 years' + n / 3000 * interval '1 second', 'test' FROM generate_series(1, 10001) AS n`,
    );
    const whole = await service.get('/auth/revocations', ivy);
    expect([whole.status, whole.type]).toEqual([200, 'application/json']);
    expect(whole.headers['revocations-as-of']).toEqual(expect.any(String));
    const many = (whole.body as Revocation[]).filter(({ identifier }) => identifier.startsWith('many-'));
    expect(new Set(many.map(({ identifier }) => identifier)).size).toBe(10_001);
    const dates = (whole.body as Revocation[]).map(({ revocationDate }) => revocationDate);
    expect(dates).toEqual(dates.toSorted());
    await service.database.query(`DELETE FROM auth.revocations WHERE identifier LIKE 'many-%'`);
  });

  it.each<[string, string, number, string]>([
    ['a person', 'svc-personid/1003', 8, 'rita.resident'],
    ['an internal user', 'internal-legacy/9001', 1, 'ivy.internal'],
  ])(
    'cover every token of %s issued so far, and none issued afterwards',
    async (_, key, persona, userName) => {
      const before = await tokenOf(persona, userName);
      await service.put(`/auth/revocations/${key}`, carl);
      const after = await tokenOf(persona, userName);
      expect(Number(claimsOf(after).iat)).toBeGreaterThan(Number(claimsOf(before).iat));
      const exchange = (token: string): Promise<{ body: { rejectionReason: number } }> =>
        bearerOf(service.post('/auth/token/bearer'), token);
      expect((await exchange(before)).body.rejectionReason).toBe(6);
      expect((await exchange(after)).body.rejectionReason).toBe(0);
      await eventually(
        async () => expect((await service.get('/auth/revocations/jti/x', before)).status).toBe(401),
        {
          timeoutMs: 2_000,
        },
      );
      // The guard has read the revocation by now, and must still admit the newer token.
      expect((await service.get('/auth/revocations/jti/x', after)).status).toBe(404);
    },
  );

  it('are limited to the caller’s own under self-or-admin', async () => {
    const put = async (key: string, token: string): Promise<number> =>
      (await bearerOf(request(strictReplica.getHttpServer()).put(`/auth/revocations/${key}`), token)).status;
    expect(await put('svc-personid/1002', carl)).toBe(403);
    expect(await put('jti/other', carl)).toBe(403);
    const refused = [strictReplica.getHttpServer(), service.app.getHttpServer()].map(async (replica) => {
      const response = await bearerOf(request(replica).put('/auth/revocations/sub/personid:1002'), carl);
      return [response.status, (response.body as { detail: string }).detail];
    });
    expect(await Promise.all(refused)).toEqual([
      [403, 'You may revoke only yourself, your own sessions and your own tokens.'],
      [403, 'Only internal administrators may revoke sessions and subjects of others, and applications.'],
    ]);
    expect(await put('jti/other', await tokenOf(1, 'ivy.internal'))).toBe(200);
    expect(await put('svc-personid/1001', carl)).toBe(200);
  });
});
