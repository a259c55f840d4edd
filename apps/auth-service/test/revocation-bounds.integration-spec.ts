import { randomUUID } from 'node:crypto';
import { eventually } from '@platform/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Client } from 'pg';
import {
  agentOf,
  BACKEND,
  REPORTS,
  bearerOf,
  claimsOf,
  startAuthService,
  startReplica,
} from './auth-fixture';
import type { AuthFixture, Replica } from './auth-fixture';

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

describe('limits on revocations, on two replicas', () => {
  let service: AuthFixture;
  let second: NestFastifyApplication;
  let ivy: string;
  beforeAll(async () => {
    service = await startAuthService();
    second = await startReplica(service.database.url);
    ivy = (await signIn('ivy.internal', 1)).accessToken;
  });
  beforeEach(() => service.database.query('DELETE FROM auth.revocations'));
  afterAll(async () => {
    await second.close();
    await service.stop();
  });

  async function signIn(userName: string, persona: number, application = BACKEND): Promise<Tokens> {
    const body = { ...application, persona, userName };
    const response = await service.post('/auth/token/trust-simple', body);
    expect(response.status).toBe(200);
    return response.body as Tokens;
  }
  const put = (key: string, token: string, replica: Replica = service.app) =>
    bearerOf(agentOf(replica).put(`/auth/revocations/${key}`), token);
  const end = async (sid: string, token: string): Promise<number> =>
    (await bearerOf(agentOf(service.app).delete(`/auth/sessions/${sid}`), token)).status;
  const refresh = async ({ refreshToken }: Tokens): Promise<Tokens & { rejectionReason: number }> =>
    (await service.post('/auth/token/refresh', { refreshToken })).body as Tokens & {
      rejectionReason: number;
    };
  const exchange = async ({ accessToken }: Tokens): Promise<number> =>
    (await bearerOf(service.post('/auth/token/bearer'), accessToken)).body.rejectionReason as number;
  const forgetQuotas = (): Promise<unknown> => service.database.query('DELETE FROM auth.revocation_quota');
  /** Waits until the clock next reaches this millisecond of a second. */
  const until = async (millisecond: number): Promise<void> => {
    const now = Date.now();
    const atMs = now + ((1_000 + millisecond - (now % 1_000)) % 1_000);
    await eventually(() => expect(Date.now()).toBeGreaterThanOrEqual(atMs), { intervalMs: 2 });
  };

  describe('committed after validators have polled past its date', () => {
    beforeAll(() =>
      service.database.query(`
        CREATE FUNCTION auth.age_revocation() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN NEW.revocation_date := NEW.revocation_date - interval '90 seconds'; RETURN NEW; END $$;
        CREATE TRIGGER age BEFORE INSERT ON auth.revocation FOR EACH ROW EXECUTE FUNCTION auth.age_revocation();
        CREATE TRIGGER age BEFORE INSERT ON auth.session_revocation FOR EACH ROW EXECUTE FUNCTION auth.age_revocation();`),
    );
    afterAll(() => service.database.query('DROP FUNCTION auth.age_revocation() CASCADE'));

    it.each(['jti', 'sid'])(
      'a revocation of a %s takes effect within seconds on both replicas, and is confirmed',
      async (domain) => {
        const { accessToken } = await signIn('olga.owner', 16);
        const identifier = String(claimsOf(accessToken)[domain]);
        expect((await put(`${domain}/${identifier}`, ivy)).status).toBe(200);
        await eventually(async () => {
          for (const replica of [service.app, second])
            expect((await bearerOf(agentOf(replica).get('/auth/me'), accessToken)).status).toBe(401);
          const rows = await service.database.query<{ confirmed: boolean }>(
            'SELECT confirmed FROM auth.revocations WHERE identifier = $1',
            [identifier],
          );
          expect(rows).toEqual([{ confirmed: true }]);
        });
      },
    );
  });

  describe('of other callers’ tokens', () => {
    it('are limited to 100 a minute per caller across replicas, except own ones and those of administrators', async () => {
      const { accessToken: carl } = await signIn('carl.customer', 2);
      const statuses: number[] = [];
      for (let sent = 0; sent < 101; sent += 1) {
        const replica = sent % 2 === 0 ? service.app : second;
        statuses.push((await put(`jti/${randomUUID()}`, carl, replica)).status);
      }
      expect(statuses).toEqual([...Array<number>(100).fill(200), 429]);
      const refused = await put('svc-personid/4711', carl);
      expect([refused.status, refused.type]).toEqual([429, 'application/problem+json']);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
      const { accessToken: olga } = await signIn('olga.owner', 16);
      expect((await put(`jti/${randomUUID()}`, olga)).status).toBe(200);
      expect((await put(`jti/${randomUUID()}`, ivy)).status).toBe(200);
      // A new sign-in counts for the same caller.
      const again = await signIn('carl.customer', 2);
      expect((await put(`jti/${randomUUID()}`, again.accessToken)).status).toBe(429);
      // The caller's own tokens, including a refresh token.
      const other = await signIn('carl.customer', 2);
      expect((await put(`jti/${String(claimsOf(other.accessToken).jti)}`, again.accessToken)).status).toBe(
        200,
      );
      expect((await put(`jti/${String(claimsOf(other.refreshToken).jti)}`, again.accessToken)).status).toBe(
        200,
      );
      expect((await put('svc-personid/1001', again.accessToken)).status).toBe(200);
      await forgetQuotas();
    });

    it('are limited to 10,000 stored per caller, including those from release 1.0.0', async () => {
      await service.database.query(
        `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject)
         SELECT 'jti', 'j-' || n, now() - interval '1 day', 'personid:1002' FROM generate_series(1, 10000) AS n`,
      );
      const { accessToken } = await signIn('olga.owner', 16);
      const refused = await put('jti/one-more', accessToken);
      expect(refused.status).toBe(429);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      // Setting a stored revocation again takes no further slot.
      expect((await put('jti/j-1', accessToken)).status).toBe(200);
      expect((await put('svc-personid/1002', accessToken)).status).toBe(200);
      await forgetQuotas();
    });

    it('are limited to 1,000 stored for the caller’s own single tokens, but its sessions can always be ended', async () => {
      await service.database.query(
        `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject, own)
         SELECT 'jti', 'own-' || n, now() - interval '1 hour', 'personid:1002', true FROM generate_series(1, 999) AS n`,
      );
      const caller = await signIn('olga.owner', 16);
      const [one, another] = [await signIn('olga.owner', 16), await signIn('olga.owner', 16)];
      const last = `jti/${String(claimsOf(one.refreshToken).jti)}`;
      expect((await put(last, caller.accessToken)).status).toBe(200);
      const beyond = `jti/${String(claimsOf(another.refreshToken).jti)}`;
      for (const replica of [service.app, second]) {
        const refused = await put(beyond, caller.accessToken, replica);
        expect([refused.status, refused.type]).toEqual([429, 'application/problem+json']);
        expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      }
      // Setting a stored revocation again takes no further slot.
      expect((await put(last, caller.accessToken)).status).toBe(200);
      expect(await end(String(claimsOf(another.refreshToken).sid), caller.accessToken)).toBe(204);
      await forgetQuotas();
    });

    it('are kept until a token of this service has expired, and 366 days for any other', async () => {
      const { accessToken: rita } = await signIn('rita.resident', 8);
      const olga = await signIn('olga.owner', 16);
      const access = String(claimsOf(olga.accessToken).jti);
      const refreshed = String(claimsOf(olga.refreshToken).jti);
      for (const jti of [access, refreshed, 'a-stranger'])
        expect((await put(`jti/${jti}`, rita)).status).toBe(200);
      const rows = await service.database.query<{ identifier: string; days: number | null }>(
        `SELECT identifier, (extract(epoch FROM expires_at - now()) / 86400)::float8 AS days
         FROM auth.revocations WHERE domain = 'jti'`,
      );
      const days = Object.fromEntries(rows.map((row) => [row.identifier, row.days]));
      expect(days[access]).toBeGreaterThan(1);
      expect(days[access]).toBeLessThan(1.1);
      expect(days[refreshed]).toBeGreaterThan(364.9);
      expect(days[refreshed]).toBeLessThan(366);
      expect(days['a-stranger']).toBeNull();
      await forgetQuotas();
    });
  });

  it('of service users are only for administrators', async () => {
    const { accessToken: olga } = await signIn('olga.owner', 16);
    const platform = await signIn('svc.platform', 1);
    const keys = [
      'internal-legacy/9000',
      `jti/${String(claimsOf(platform.accessToken).jti)}`,
      `token/${String(claimsOf(platform.refreshToken).jti).toUpperCase()}`,
    ];
    for (const key of keys) expect((await put(key, olga)).status).toBe(403);
    expect(await exchange(platform)).toBe(0);
    for (const key of keys) expect((await put(key, ivy)).status).toBe(200);
    expect(await exchange(platform)).toBe(6);
    await forgetQuotas();
  });

  it('of another user fail no sign-in and delay none by more than a second, however often repeated', async () => {
    const { accessToken: rita } = await signIn('rita.resident', 8);
    const login = { ...BACKEND, persona: 2, userName: 'carl.customer' };
    let isOver = false;
    const attack = (async () => {
      const statuses: number[] = [];
      while (!isOver) {
        statuses.push((await put('svc-personid/1001', rita)).status);
        await forgetQuotas();
      }
      return statuses;
    })();
    const delays: number[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      await until(turn * 125);
      const begun = performance.now();
      const { status, body } = await service.post('/auth/token/trust-simple', login);
      expect([status, body.rejectionReason]).toEqual([200, 0]);
      delays.push(performance.now() - begun);
    }
    isOver = true;
    expect(new Set(await attack)).toEqual(new Set([200]));
    expect(Math.max(...delays)).toBeLessThan(1_250);
  }, 60_000);

  it('treat all identifiers of a person as one: revoking them in turn delays no sign-in longer and invalidates no new token', async () => {
    await service.database.query(
      `INSERT INTO internal_legacy.internal_user (user_name, user_name_key, display_name, user_id, person_id)
       VALUES ('carl.internal', 'carl.internal', 'Carl', 9101, 1001)`,
    );
    const names = ['svc-personid/1001', 'internal-legacy/9101'];
    const { accessToken: rita } = await signIn('rita.resident', 8);
    const login = { ...BACKEND, persona: 2, userName: 'carl.customer' };
    let isOver = false;
    // Sends a revocation every second, for each identifier in turn, just before a waiting sign-in continues.
    const attack = (async () => {
      const sent: Promise<number>[] = [];
      for (let turn = 0; !isOver; turn += 1, await until(500)) {
        await until(992);
        sent.push(put(names[turn % names.length]!, rita).then(({ status }) => status));
      }
      return Promise.all(sent);
    })();
    const delays: number[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      await until(100);
      const begun = performance.now();
      const { status, body } = await service.post('/auth/token/trust-simple', login);
      expect([status, body.rejectionReason]).toEqual([200, 0]);
      delays.push(performance.now() - begun);
      expect(await exchange(body as Tokens)).toBe(0);
    }
    isOver = true;
    expect(new Set(await attack)).toEqual(new Set([200]));
    expect(Math.max(...delays)).toBeLessThan(1_250);
    await forgetQuotas();
    await service.database.query('DELETE FROM internal_legacy.internal_user WHERE user_id = 9101');
  }, 60_000);

  it('of the service user do not affect its sign-in when administrators repeat them', async () => {
    const login = { ...BACKEND, persona: 1, userName: 'svc.platform' };
    let isOver = false;
    const attack = (async () => {
      const statuses: number[] = [];
      while (!isOver) statuses.push((await put('internal-legacy/9000', ivy)).status);
      return statuses;
    })();
    let refused = 0;
    for (let turn = 0; turn < 5; turn += 1) {
      const { status } = await service.post('/auth/token/trust-simple', login);
      if (status !== 200) refused += 1;
    }
    isOver = true;
    expect(new Set(await attack)).toEqual(new Set([200]));
    expect(refused).toBe(0);
  }, 60_000);

  it('by an administrator interrupt a sign-in of that user with an explanation', async () => {
    const login = { ...BACKEND, persona: 8, userName: 'rita.resident' };
    // Tries again if the second of the first revocation was over before the sign-in saw it.
    const { headers, body } = await eventually(async () => {
      await put('svc-personid/1003', ivy);
      let isOver = false;
      const signingIn = service.post('/auth/token/trust-simple', login).then((response) => {
        isOver = true;
        return response;
      });
      while (!isOver) expect((await put('svc-personid/1003', ivy)).status).toBe(200);
      const response = await signingIn;
      expect(response.status).toBe(503);
      return response;
    });
    expect(headers['retry-after']).toMatch(/^[1-9]/);
    expect(body).toMatchObject({ detail: 'The user was revoked during this sign-in. Try again.' });
  }, 60_000);

  describe('once acknowledged', () => {
    it('cover tokens issued before their commit, however late that is', async () => {
      const before = await signIn('olga.owner', 16);
      const { accessToken: admin } = await signIn('gina.global', 2, REPORTS);
      const lock = new Client({ connectionString: service.database.ownerUrl });
      await lock.connect();
      await lock.query('BEGIN');
      await lock.query('LOCK TABLE auth.revocation_audit IN ACCESS EXCLUSIVE MODE');
      const revoking = put('svc-personid/1002', admin).then(({ status }) => status);
      await eventually(async () => {
        const [row] = await service.database.querySuperuser<{ waiting: number }>(
          `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        expect(row!.waiting).toBe(1);
      });
      // Waits for a later second than that of the revocation's date.
      await until(0);
      const renewed = await refresh(before);
      expect(renewed.rejectionReason).toBe(0);
      await lock.query('COMMIT');
      await lock.end();
      expect(await revoking).toBe(200);
      expect((await refresh(renewed)).rejectionReason).toBe(6);
      expect(await exchange(renewed)).toBe(6);
      await eventually(async () =>
        expect((await service.get('/auth/me', renewed.accessToken)).status).toBe(401),
      );
      expect((await refresh(await signIn('olga.owner', 16))).rejectionReason).toBe(0);
    });
  });

  describe('named by a UUID', () => {
    it('are the same in any letter case, for tokens and sessions, when written and read', async () => {
      const first = await signIn('carl.customer', 2);
      const jti = String(claimsOf(first.accessToken).jti);
      expect((await put(`jti/${jti.toUpperCase()}`, first.accessToken)).status).toBe(200);
      for (const spelling of [jti, jti.toUpperCase()]) {
        const { status, body } = await service.get(`/auth/revocations/jti/${spelling}`, ivy);
        expect([status, body.identifier]).toEqual([200, jti]);
      }
      expect(await exchange(first)).toBe(6);
      const next = await signIn('carl.customer', 2);
      const sid = String(claimsOf(next.accessToken).sid);
      expect((await put(`sid/${sid.toUpperCase()}`, next.accessToken)).status).toBe(200);
      expect((await refresh(next)).rejectionReason).toBe(6);
      const last = await signIn('carl.customer', 2);
      expect(await end(String(claimsOf(last.accessToken).sid).toUpperCase(), ivy)).toBe(204);
      expect((await refresh(last)).rejectionReason).toBe(6);
      // An identifier that is not a UUID keeps its letter case.
      await put('jti/Some-Token', ivy);
      expect((await service.get('/auth/revocations/jti/some-token', ivy)).status).toBe(404);
    });

    it('end an existing session, and return 404 for an unknown one, to administrators too', async () => {
      expect(await end(randomUUID(), ivy)).toBe(404);
      const { accessToken, refreshToken } = await signIn('olga.owner', 16);
      const sid = String(claimsOf(refreshToken).sid);
      expect([await end(sid, ivy), await end(sid, ivy)]).toEqual([204, 204]);
      // A session without a refresh token has no row, but its owner can end it too.
      const alone = await signIn('carl.customer', 2, REPORTS);
      expect(await end(String(claimsOf(alone.accessToken).sid), alone.accessToken)).toBe(204);
      await eventually(async () => expect((await service.get('/auth/me', accessToken)).status).toBe(401));
    });
  });
});
