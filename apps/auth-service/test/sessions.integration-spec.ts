import { randomUUID } from 'node:crypto';
import { eventually } from '@platform/testing';
import request from 'supertest';
import { administrator } from './admin-fixture';
import { BACKEND, PASSWORD, REPORTS, bearerOf, claimsOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

interface Listed {
  sid: string;
  flow: string;
  applicationKey: string;
  createdAt: string;
  lastUsedAt: string;
  expiresAt: string;
  current: boolean;
}

describe('sessions', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
    await administrator(service.database.ownerUrl).json('applications update demo-reports --administrators');
  });
  afterAll(() => service.stop());

  const signIn = async (userName: string, persona = 2, application = BACKEND): Promise<Tokens> => {
    const { body } = await service.post('/auth/token/trust-simple', { ...application, persona, userName });
    return body as Tokens;
  };
  const refresh = async ({ refreshToken }: Tokens): Promise<Tokens & { rejectionReason: number }> =>
    (await service.post('/auth/token/refresh', { refreshToken })).body as Tokens & {
      rejectionReason: number;
    };
  const exchange = async ({
    accessToken,
  }: Pick<Tokens, 'accessToken'>): Promise<Tokens & { rejectionReason: number }> =>
    (await bearerOf(service.post('/auth/token/bearer'), accessToken)).body as Tokens & {
      rejectionReason: number;
    };
  const logOut = async ({ accessToken }: Pick<Tokens, 'accessToken'>): Promise<number> =>
    (await bearerOf(service.post('/auth/logout'), accessToken)).status;
  const end = async (sid: string, token?: string): Promise<number> =>
    (await bearerOf(request(service.app.getHttpServer()).delete(`/auth/sessions/${sid}`), token)).status;
  const sidOf = (token: string): string => String(claimsOf(token).sid);
  const list = async ({ accessToken }: Tokens, query = ''): Promise<Listed[]> => {
    const { status, body } = await service.get(`/auth/sessions${query}`, accessToken);
    expect(status).toBe(200);
    return (body as { sessions: Listed[] }).sessions;
  };
  const refusedByGuard = ({ accessToken }: Pick<Tokens, 'accessToken'>): Promise<void> =>
    eventually(async () => expect((await service.get('/auth/me', accessToken)).status).toBe(401), {
      timeoutMs: 2_000,
    });

  it('are opened by each sign-in, and all tokens derived from it carry the session’s id', async () => {
    const first = await signIn('carl.customer');
    const refreshed = await refresh(first);
    const exchanged = await exchange(refreshed);
    const again = await refresh(exchanged);
    const sids = [first, refreshed, exchanged, again].flatMap(({ accessToken, refreshToken }) => [
      sidOf(accessToken),
      sidOf(refreshToken),
    ]);
    expect(new Set(sids)).toEqual(new Set([sidOf(first.accessToken)]));
    const second = await signIn('carl.customer');
    expect(sidOf(second.accessToken)).not.toBe(sidOf(first.accessToken));
  });

  it('exist for tokens without a refresh token too: not listed, but they can be ended', async () => {
    const tokens = await signIn('carl.customer', 2, REPORTS);
    expect(tokens.refreshToken).toBeNull();
    const exchanged = await exchange(tokens);
    expect(sidOf(exchanged.accessToken)).toBe(sidOf(tokens.accessToken));
    expect((await list(tokens)).map(({ sid }) => sid)).not.toContain(sidOf(tokens.accessToken));
    expect(await logOut(exchanged)).toBe(204);
    expect((await exchange(tokens)).rejectionReason).toBe(6);
    await refusedByGuard(tokens);
  });

  it('are listed for the caller if they can be refreshed, newest first, in pages', async () => {
    const oldest = await signIn('rita.resident', 8);
    const middle = await signIn('rita.resident', 8);
    const { body } = await service
      .post('/auth/token/user', { user: 'rita.resident', password: PASSWORD })
      .set('X-Application-Key', 'demo-backend');
    const newest = body as Tokens;
    const sids = [newest, middle, oldest].map(({ accessToken }) => sidOf(accessToken));
    const sessions = await list(middle);
    expect(sessions.map(({ sid }) => sid)).toEqual(sids);
    expect(sessions.map(({ current }) => current)).toEqual([false, true, false]);
    expect(sessions.map(({ flow }) => flow)).toEqual(['password', 'trust-simple', 'trust-simple']);
    const created = Date.parse(sessions[0]!.createdAt);
    expect(Math.abs(Date.parse(sessions[0]!.expiresAt) - created - 365 * 86_400_000)).toBeLessThan(5_000);
    expect(sessions[0]!.applicationKey).toBe('demo-backend');

    const pages: string[] = [];
    for (let key: string | null = ''; key !== null;) {
      const query: string = key === '' ? '' : `&pageKey=${encodeURIComponent(key)}`;
      const page = (await service.get(`/auth/sessions?pageSize=2${query}`, newest.accessToken)).body as {
        sessions: Listed[];
        nextPageKey: string | null;
      };
      expect(page.sessions.length).toBeLessThanOrEqual(2);
      pages.push(...page.sessions.map(({ sid }) => sid));
      key = page.nextPageKey;
    }
    expect(pages).toEqual(sids);

    expect(await logOut(oldest)).toBe(204);
    await service.put('/auth/revocations/sub/personid:1003', newest.accessToken);
    const fresh = await signIn('rita.resident', 8);
    expect((await list(fresh)).map(({ sid }) => sid)).toEqual([sidOf(fresh.accessToken)]);
  });

  it('are paged past those that can no longer be refreshed, reading at most 1,000 sessions per page', async () => {
    const { database } = service;
    const tokens = await signIn('olga.owner', 16);
    // These sessions were all revoked by their person, long before this session began.
    await database.query(`
      WITH family AS (
        INSERT INTO auth.refresh_family (family_id, subject, person_id, application_key, flow, persona_limit, auth_time, created_at)
        SELECT gen_random_uuid(), 'personid:1002', 999999, 'demo-backend', 'user', 16, at, at
        FROM generate_series(1, 2500) AS n, LATERAL (SELECT now() - n * interval '1 minute' - interval '1 hour' AS at) AS begun
        RETURNING family_id, auth_time
      )
      INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
      SELECT gen_random_uuid(), family_id, auth_time, auth_time + interval '365 days' FROM family`);
    await database.query(`
      INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject)
      VALUES ('svc-personid', '999999', now() - interval '30 minutes', 's')`);
    const pages: string[][] = [];
    for (let key: string | null = ''; key !== null;) {
      const query: string = key === '' ? '' : `?pageKey=${encodeURIComponent(key)}`;
      const { body } = await service.get(`/auth/sessions${query}`, tokens.accessToken);
      pages.push(body.sessions.map(({ sid }: Listed) => sid));
      key = body.nextPageKey;
    }
    expect(pages).toEqual([[sidOf(tokens.accessToken)], [], []]);
    const command = administrator(database.ownerUrl);
    expect(await command.json('sessions list sub personid:1002')).toHaveLength(1);
    await database.query(`DELETE FROM auth.refresh_family WHERE person_id = 999999`);
  });

  it('of other users are listed for internal administrators only', async () => {
    const ivy = await signIn('ivy.internal', 1);
    const olga = await signIn('olga.owner', 16);
    const sid = sidOf(olga.accessToken);
    for (const query of ['?domain=svc-personid&identifier=1002', '?domain=sub&identifier=personid:1002']) {
      expect((await list(ivy, query)).map((session) => session.sid)).toContain(sid);
      expect((await service.get(`/auth/sessions${query}`, olga.accessToken)).status).toBe(403);
    }
    const own = await list(ivy, '?domain=internal-legacy&identifier=9001');
    expect(own.find((session) => session.current)?.sid).toBe(sidOf(ivy.accessToken));
    for (const query of [
      '?domain=sub',
      '?identifier=1',
      '?domain=svc-personid&identifier=01',
      '?domain=jti&identifier=x',
    ])
      expect((await service.get(`/auth/sessions${query}`, ivy.accessToken)).status).toBe(400);
    expect((await service.get('/auth/sessions')).status).toBe(401);
  });

  it('stay listed for a person whose accounts are linked after the sign-in, who can end them', async () => {
    const { database } = service;
    await database.query(
      `INSERT INTO internal_legacy.internal_user (user_name, user_name_key, display_name, user_id)
       VALUES ('olga.internal', 'olga.internal', 'Olga', 9100)`,
    );
    await database.query(
      `INSERT INTO service_providers.technician (provider_id, user_name, user_name_key, display_name)
       VALUES (815, 'olga.tech', 'olga.tech', 'Olga')`,
    );
    const before = [
      await signIn('olga.owner', 16),
      await signIn('olga.internal', 1),
      await signIn('olga.tech', 4),
    ];
    const subjects = before.map(({ accessToken }) => String(claimsOf(accessToken).sub).split(':')[0]);
    expect(subjects).toEqual(['personid', 'userid', 'technician']);
    for (const account of ['internal_legacy.internal_user', 'service_providers.technician'])
      await database.query(`UPDATE ${account} SET person_id = 1002 WHERE user_name LIKE 'olga.%'`);
    const after = await signIn('olga.owner', 16);
    const sids = [after, ...before.toReversed()].map(({ accessToken }) => sidOf(accessToken));
    const ivy = await signIn('ivy.internal', 1);
    const listed = async (tokens: Tokens, query = ''): Promise<string[]> => {
      const all = (await list(tokens, query)).map(({ sid }) => sid);
      return all.filter((sid) => sids.includes(sid));
    };
    expect(await listed(after)).toEqual(sids);
    for (const name of [
      'svc-personid&identifier=1002',
      'internal-legacy&identifier=9100',
      'sub&identifier=userid:9100',
    ])
      expect(await listed(ivy, `?domain=${name}`)).toEqual(sids);
    for (const { accessToken } of before.slice(1))
      expect(await end(sidOf(accessToken), after.accessToken)).toBe(204);
    expect(await listed(after)).toEqual([sids[0], sids[3]]);
    for (const name of ['userid:9100', 'personid:1002'])
      expect((await service.put(`/auth/revocations/sub/${name}`, after.accessToken)).status).toBe(200);
    // Another user can neither end nor list these sessions.
    const carl = await signIn('carl.customer');
    expect(await end(sids[3]!, carl.accessToken)).toBe(404);
    expect(await listed(carl)).toEqual([]);
    for (const account of ['internal_legacy.internal_user', 'service_providers.technician'])
      await database.query(`DELETE FROM ${account} WHERE user_name LIKE 'olga.%'`);
  });

  it.each<[string, (tokens: Tokens) => Promise<unknown>]>([
    ['logout', (tokens) => logOut(tokens)],
    [
      'DELETE by its owner in another session',
      async ({ accessToken }) => end(sidOf(accessToken), (await signIn('carl.customer')).accessToken),
    ],
    [
      'DELETE by an internal administrator',
      async ({ accessToken }) => end(sidOf(accessToken), (await signIn('ivy.internal', 1)).accessToken),
    ],
    [
      'PUT of its sid',
      ({ accessToken }) => service.put(`/auth/revocations/sid/${sidOf(accessToken)}`, accessToken),
    ],
    [
      'PUT of the jti of a refresh token',
      async ({ accessToken, refreshToken }) =>
        service.put(`/auth/revocations/jti/${String(claimsOf(refreshToken).jti)}`, accessToken),
    ],
  ])('end by %s: all their tokens are refused, a new login is not', async (_, endSession) => {
    const first = await signIn('carl.customer');
    const exchanged = await exchange(first);
    await endSession(first);
    expect((await refresh(first)).rejectionReason).toBe(6);
    expect((await refresh(exchanged)).rejectionReason).toBe(6);
    expect((await exchange(first)).rejectionReason).toBe(6);
    await refusedByGuard(first);
    await refusedByGuard(exchanged);
    const fresh = await signIn('carl.customer');
    expect((await service.get('/auth/me', fresh.accessToken)).status).toBe(200);
    expect((await refresh(fresh)).rejectionReason).toBe(0);
  });

  it('end by the reuse of a refresh token, together with tokens exchanged from it', async () => {
    const first = await signIn('carl.customer');
    const exchanged = await exchange(first);
    await refresh(first);
    await service.database.query(
      `UPDATE auth.refresh_token SET rotated_at = rotated_at - interval '31 seconds', rotated_in = NULL WHERE jti = $1`,
      [claimsOf(first.refreshToken).jti],
    );
    expect((await refresh(first)).rejectionReason).toBe(6);
    expect((await refresh(exchanged)).rejectionReason).toBe(6);
    expect((await exchange(exchanged)).rejectionReason).toBe(6);
    await refusedByGuard(exchanged);
  });

  it('cannot be ended by other users, and no response reveals whether they exist', async () => {
    const carl = await signIn('carl.customer');
    const olga = await signIn('olga.owner', 16);
    for (const sid of [sidOf(carl.accessToken), randomUUID(), 'no-uuid'])
      expect(await end(sid, olga.accessToken)).toBe(404);
    expect(await end(sidOf(carl.accessToken))).toBe(401);
    expect(await logOut({ accessToken: 'x' })).toBe(401);
    expect((await refresh(carl)).rejectionReason).toBe(0);
  });

  it.each(['post /auth/logout', `delete /auth/sessions/${randomUUID()}`])(
    'are not ended by %s with a body that is not JSON',
    async (operation) => {
      const signedIn = await signIn('carl.customer');
      const [method, path] = operation.split(' ') as ['post' | 'delete', string];
      const call = request(service.app.getHttpServer())[method](path).set('content-type', 'application/json');
      expect((await bearerOf(call.send('{'), signedIn.accessToken)).status).toBe(400);
      expect((await service.get('/auth/me', signedIn.accessToken)).status).toBe(200);
    },
  );

  it('have revocations of their own kind: restricted to write, and listed only on request', async () => {
    const carl = await signIn('carl.customer');
    const ivy = await signIn('ivy.internal', 1);
    const olga = await signIn('olga.owner', 16);
    const put = async (key: string, { accessToken }: Tokens): Promise<number> =>
      (await service.put(`/auth/revocations/${key}`, accessToken)).status;
    expect(await put(`sid/${sidOf(carl.accessToken)}`, olga)).toBe(403);
    expect(await put('sub/personid:1001', olga)).toBe(403);
    expect(await put('client_id/nobody', olga)).toBe(403);
    expect(await put('sid/no-uuid', ivy)).toBe(400);
    expect(await put('sub/carl.customer', ivy)).toBe(400);
    expect(await put('sub/personid:1005', ivy)).toBe(200);
    expect(await put('client_id/nobody', ivy)).toBe(200);
    const domains = async (query: string): Promise<Set<string>> => {
      const { body } = await service.get(`/auth/revocations${query}`, ivy.accessToken);
      return new Set((body as { domain: string }[]).map(({ domain }) => domain));
    };
    const specified = await domains('');
    for (const domain of ['sid', 'sub', 'client_id']) expect(specified.has(domain)).toBe(false);
    expect(await domains('?domains=all')).toEqual(new Set([...specified, 'sid', 'sub', 'client_id']));
    expect((await service.get('/auth/revocations?domains=sid', ivy.accessToken)).status).toBe(400);
    const page = await service.get('/auth/revocations?domains=all&limit=1', ivy.accessToken);
    expect(page.headers.link).toContain('domains=all');
  });

  it.each([
    ['a subject', 'sub/personid:1001', 'carl.customer', 2],
    ['an application', 'client_id/demo-backend', 'olga.owner', 16],
  ])(
    'are revoked with all tokens of %s so far, while a new login works at once',
    async (_, key, user, persona) => {
      const ivy = await signIn('ivy.internal', 1, BACKEND);
      const before = await signIn(user, persona);
      await service.put(`/auth/revocations/${key}`, ivy.accessToken);
      const after = await signIn(user, persona);
      expect((await refresh(before)).rejectionReason).toBe(6);
      expect((await exchange(before)).rejectionReason).toBe(6);
      expect((await refresh(after)).rejectionReason).toBe(0);
      expect((await exchange(after)).rejectionReason).toBe(0);
      await refusedByGuard(before);
      expect((await service.get('/auth/me', after.accessToken)).status).toBe(200);
    },
  );

  it.each([
    ['svc-personid/1001', 'sub/personid:1001'],
    ['sub/personid:1001', 'sub/personid:1001'],
    ['client_id/demo-backend', 'svc-personid/1001'],
  ])(
    'are revoked by a second revocation within the same second too: %s, a login, %s',
    async (first, second) => {
      const { accessToken: admin } = await signIn('gina.global', 2, REPORTS);
      for (let round = 0; round < 3; round += 1) {
        expect((await service.put(`/auth/revocations/${first}`, admin)).status).toBe(200);
        const between = await signIn('carl.customer');
        expect((await service.put(`/auth/revocations/${second}`, admin)).status).toBe(200);
        expect((await exchange(between)).rejectionReason).toBe(6);
        expect((await refresh(between)).rejectionReason).toBe(6);
      }
    },
  );

  it('are not opened by a sign-in in progress when its user is revoked once more', async () => {
    const { accessToken: admin } = await signIn('gina.global', 2, REPORTS);
    const revoke = async (): Promise<void> => {
      expect((await service.put('/auth/revocations/sub/personid:1001', admin)).status).toBe(200);
    };
    const login = { ...BACKEND, persona: 2, userName: 'carl.customer' };
    for (let tried = 0; tried < 3;) {
      // The sign-in starts early in a revoked second. The last revocation is late in that second.
      do await revoke();
      while (Date.now() % 1_000 > 300);
      const second = Math.floor(Date.now() / 1_000);
      const underWay = service.post('/auth/token/trust-simple', login).then((response) => response);
      let revocations = 0;
      for (; Math.floor((Date.now() + 50) / 1_000) === second; revocations += 1) await revoke();
      const { status, body } = await underWay;
      // The sign-in needs three round trips before it waits. With fewer than ten revocations, the last one
      // may have preceded the wait.
      if (revocations < 10) continue;
      tried += 1;
      if (status === 200) expect((await exchange(body as Tokens)).rejectionReason).toBe(6);
      else expect(status).toBe(503);
    }
  });

  it('last no longer than the maximum age of a sign-in, whatever is exchanged', async () => {
    const short = await startAuthService({ environment: { REFRESH_MAX_AGE: '600' } });
    try {
      const { body } = await short.post('/auth/token/trust-simple', {
        ...BACKEND,
        persona: 2,
        userName: 'carl.customer',
      });
      const { accessToken, refreshToken } = body as Tokens;
      const endsAt = Number(claimsOf(accessToken).auth_time) + 600;
      expect(claimsOf(refreshToken).exp).toBe(endsAt);
      const refreshed = (await short.post('/auth/token/refresh', { refreshToken })).body as Tokens;
      expect(claimsOf(refreshed.refreshToken).exp).toBe(endsAt);
      const exchanged = (await bearerOf(short.post('/auth/token/bearer'), accessToken)).body as Tokens;
      expect(claimsOf(exchanged.refreshToken).exp).toBe(endsAt);
    } finally {
      await short.stop();
    }
  });
});
