import { randomUUID } from 'node:crypto';
import { Metrics } from '@platform/service-defaults';
import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import { createTestDatabase, eventually, testSize } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Client } from 'pg';
import type { Test } from 'supertest';
import { AUTH_CONFIG } from '../src/config';
import type { AuthConfig } from '../src/config';
import { BoundSessionsJob } from '../src/token/bound-sessions.job';
import { SessionBoundsRepository } from '../src/token/session-bounds.repository';
import {
  BACKEND,
  agentOf,
  bearerOf,
  claimsOf,
  expectOutcome,
  migrateWithIdentities,
  postTo,
  refreshTokenOf,
  startReplica,
} from './auth-fixture';

/** Used refresh tokens of one session: more than two statements' worth. */
const BACKLOG = testSize('TEST_SESSION_TOKENS', { quick: 20_001, full: 1_000_000 });
const PER_HOUR = 6;
const SESSIONS_PER_USER = 3;
const ENVIRONMENT = {
  REFRESH_TOKENS_PER_HOUR: String(PER_HOUR),
  SESSIONS_PER_USER: String(SESSIONS_PER_USER),
};

interface Session {
  sid: string;
  accessToken: string;
  refreshToken: string;
}

describe('what one user can make grow by signing in and refreshing, on two replicas', () => {
  let database: TestDatabase;
  let replicas: [NestFastifyApplication, NestFastifyApplication];
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    replicas = [
      await startReplica(database.url, { environment: ENVIRONMENT }),
      await startReplica(database.url, { environment: ENVIRONMENT }),
    ];
    // More rows in one statement would run into its time limit one day.
    await database.query(`
      CREATE FUNCTION auth.refuse_large() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM removed) > 10000 THEN RAISE 'too many rows in one statement'; END IF;
        RETURN NULL;
      END $$`);
    await database.query(`CREATE TRIGGER refuse_large AFTER DELETE ON auth.refresh_token REFERENCING OLD TABLE AS removed
      FOR EACH STATEMENT EXECUTE FUNCTION auth.refuse_large()`);
  }, 90_000);
  afterAll(async () => {
    for (const replica of replicas) await replica.close();
    await database.drop();
  });
  beforeEach(() => database.query('DELETE FROM auth.refresh_family'));

  async function signIn(application = BACKEND): Promise<Session> {
    const person = { persona: 2, userName: 'carl.customer' };
    const { body } = await postTo(replicas[0], '/auth/token/trust-simple', { ...application, ...person });
    const { accessToken, refreshToken } = body as Session;
    return { sid: String(claimsOf(refreshToken).sid), accessToken, refreshToken };
  }
  const refresh = (refreshToken: string, replica: 0 | 1 = 0): Test =>
    postTo(replicas[replica], '/auth/token/refresh', { refreshToken });
  const ok = { status: 200, reason: 0 };
  const unknown = { status: 401, reason: 4 };
  const revoked = { status: 401, reason: 6 };

  async function refreshed(refreshToken: string, replica: 0 | 1 = 0): Promise<string> {
    const { status, body } = await refresh(refreshToken, replica);
    expect(status).toBe(200);
    return (body as Session).refreshToken;
  }
  const bound = (replica: 0 | 1 = 0): Promise<unknown> => replicas[replica].get(BoundSessionsJob).run();
  const tokensOf = async (sid: string): Promise<number> => {
    const [row] = await database.query<{ tokens: number }>(
      'SELECT count(*)::int AS tokens FROM auth.refresh_token WHERE family_id = $1',
      [sid],
    );
    return row!.tokens;
  };
  const metric = async (name: string, replica: 0 | 1 = 0): Promise<number> => {
    const text = await replicas[replica].get(Metrics).registry.metrics();
    return Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.slice(name.length),
    );
  };

  /** Used tokens of a session, each a second older than the next; the newest was issued two hours ago. */
  const addUsed = async (sid: string, count: number): Promise<void> => {
    await database.query(
      `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at, rotated_at, successor_jti, rotated_in)
       SELECT gen_random_uuid(), $1, at, at + interval '365 days', at + interval '1 second', gen_random_uuid(), 3
       FROM generate_series(1, $2::integer) AS n,
         LATERAL (SELECT date_trunc('second', now()) - interval '2 hours' - n * interval '1 second' AS at) AS issued`,
      [sid, count],
    );
  };
  /** The oldest token of a session, as its client would present it. */
  const oldestOf = async (sid: string): Promise<string> => {
    const [row] = await database.query<{ jti: string; issuedAt: Date; expiresAt: Date }>(
      `SELECT jti, issued_at AS "issuedAt", expires_at AS "expiresAt" FROM auth.refresh_token
       WHERE family_id = $1 ORDER BY issued_at LIMIT 1`,
      [sid],
    );
    const { applicationKey: clientId } = BACKEND;
    return refreshTokenOf(replicas[0], { ...row!, sessionId: sid, subject: 'personid:1001', clientId });
  };

  describe('used refresh tokens', () => {
    it('are pruned in small statements but for the newest, and one that is used again ends its session all the same', async () => {
      const { sid, refreshToken } = await signIn();
      await addUsed(sid, BACKLOG);
      const oldest = await oldestOf(sid);
      const next = await refreshed(refreshToken, 1);
      const reuses = await metric('auth_refresh_reuses_total');
      const begun = performance.now();
      await bound(1);
      if (BACKLOG > 100_000)
        process.stdout.write(`pruned ${String(BACKLOG)} in ${(performance.now() - begun).toFixed(0)} ms\n`);
      expect(await tokensOf(sid)).toBe(100);
      expect(await metric('auth_purged_rows_total{kind="used-refresh-tokens"}', 1)).toBe(BACKLOG - 98);
      await expectOutcome(refresh(next), ok);
      await expectOutcome(refresh(oldest), revoked);
      expect(await metric('auth_refresh_reuses_total')).toBe(reuses + 1);
      const audited = await database.query(
        `SELECT because FROM auth.revocation_audit WHERE domain = 'refresh-family' AND identifier = $1`,
        [sid],
      );
      expect(audited).toEqual([{ because: 'reuse' }]);
      await expectOutcome(refresh(next, 1), revoked);
      await expectOutcome(refresh(oldest, 1), revoked);
    }, 600_000);

    it('are pruned by both replicas at once', async () => {
      const { sid, refreshToken } = await signIn();
      await addUsed(sid, 20_001);
      await refreshed(await refreshed(refreshToken, 0), 1);
      await Promise.all([bound(0), bound(1)]);
      expect(await tokensOf(sid)).toBe(100);
    });

    it('leave one without a row unknown where none as young was pruned', async () => {
      const { sid, refreshToken } = await signIn();
      await addUsed(sid, 300);
      const next = await refreshed(refreshToken);
      await bound();
      await database.query('DELETE FROM auth.refresh_token WHERE jti = $1', [claimsOf(refreshToken).jti]);
      await expectOutcome(refresh(refreshToken), unknown);
      await expectOutcome(refresh(next), ok);
    });

    it('stay while one of them may be presented again, or its commit may have been late', async () => {
      const { sid, refreshToken } = await signIn();
      await addUsed(sid, 300);
      const late = new Client({ connectionString: database.ownerUrl });
      await late.connect();
      await late.query('BEGIN');
      const { rows } = await late.query<{ xid: string }>('SELECT pg_current_xact_id()::text AS xid');
      // As a client sees it whose rotation was committed a moment ago, and was begun two hours before.
      const held = await oldestOf(sid);
      await database.query('UPDATE auth.refresh_token SET rotated_in = $2 WHERE jti = $1', [
        claimsOf(held).jti,
        rows[0]!.xid,
      ]);
      await eventually(async () => {
        const [noted] = await database.query(
          `SELECT 1 FROM auth.recorded_snapshot WHERE $1::xid8 < pg_snapshot_xmax(snapshot::pg_snapshot)`,
          [rows[0]!.xid],
        );
        expect(noted).toBeDefined();
      });
      await refreshed(refreshToken);
      await bound();
      await late.query('COMMIT');
      await late.end();
      expect(await tokensOf(sid)).toBe(101);
      const next = await refreshed(refreshToken);
      expect(claimsOf(next).jti).not.toBe(claimsOf(refreshToken).jti);
    });

    it.each([-31_000, 31_000])(
      'stay while the clocks of the database and the replica differ by %d ms, and go once they agree',
      async (differenceMs) => {
        const { sid } = await signIn();
        await addUsed(sid, 300);
        let aheadMs = differenceMs;
        const clock: Clock = {
          now: () => new Date(SYSTEM_CLOCK.now().getTime() + aheadMs),
          monotonicMs: () => SYSTEM_CLOCK.monotonicMs(),
        };
        const [replica] = replicas;
        const metrics = new Metrics();
        const job = new BoundSessionsJob(
          replica.get(SessionBoundsRepository),
          replica.get(DataSource),
          clock,
          replica.get<AuthConfig>(AUTH_CONFIG),
          metrics,
        );
        job.noteRefreshed(sid);
        await job.run();
        expect(await tokensOf(sid)).toBe(301);
        expect(await metrics.registry.metrics()).toContain('auth_purges_put_off_total 1');
        aheadMs = 0;
        await job.run();
        expect(await tokensOf(sid)).toBe(100);
      },
    );

    it('that cannot be removed are in no other session’s way', async () => {
      const [bad, good] = [await signIn(), await signIn()];
      for (const { sid } of [bad, good]) await addUsed(sid, 300);
      await database.query(`
        CREATE FUNCTION auth.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$`);
      await database.query(`CREATE TRIGGER refuse BEFORE DELETE ON auth.refresh_token
        FOR EACH ROW WHEN (OLD.family_id = '${bad.sid}') EXECUTE FUNCTION auth.refuse()`);
      for (const { refreshToken } of [bad, good]) await refreshed(refreshToken);
      await expect(bound()).rejects.toThrow('1 were not bounded');
      expect([await tokensOf(bad.sid), await tokensOf(good.sid)]).toEqual([302, 100]);
      expect(await metric('auth_purge_failures_total{kind="used-refresh-tokens"}')).toBe(1);
      await database.query('DROP TRIGGER refuse ON auth.refresh_token');
      await bound();
      expect(await tokensOf(bad.sid)).toBe(100);
    });
  });

  describe('refreshes', () => {
    it('of one session in an hour are limited over both replicas, and the same token works later', async () => {
      const { sid, refreshToken } = await signIn();
      let token = refreshToken;
      let used = token;
      for (let turn = 0; turn < PER_HOUR; turn += 1) {
        used = token;
        token = await refreshed(token, turn % 2 === 0 ? 0 : 1);
      }
      for (const replica of [0, 1] as const) {
        const sent = refresh(token, replica);
        await expectOutcome(sent, { status: 429, reason: 7 });
        const retryAfter = Number((await sent).headers['retry-after']);
        expect(retryAfter).toBeGreaterThan(3_500);
        expect(retryAfter).toBeLessThanOrEqual(3_600);
      }
      expect(await metric('auth_token_rate_limited_total{by="session"}')).toBe(1);
      // A response that was lost is repeated all the same, and another session is not concerned.
      expect(await refreshed(used)).toBe(token);
      await refreshed((await signIn()).refreshToken);
      await database.query(
        `UPDATE auth.refresh_token SET issued_at = issued_at - interval '1 hour' WHERE family_id = $1 AND rotated_at IS NOT NULL`,
        [sid],
      );
      await refreshed(token);
    });

    it('of a session at once get no more than one token each, whatever comes', async () => {
      const { refreshToken } = await signIn();
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => refresh(refreshToken, n % 2 === 0 ? 0 : 1)),
      );
      const successors = new Set(answers.map(({ body }) => (body as Session).refreshToken));
      expect(successors.size).toBe(1);
    });
  });

  describe('sessions of a user in an application', () => {
    const exchange = (accessToken: string, replica: 0 | 1 = 0): Test =>
      bearerOf(agentOf(replicas[replica]).post('/auth/token/bearer'), accessToken);
    const logOut = async ({ accessToken }: Session): Promise<void> => {
      await bearerOf(agentOf(replicas[0]).post('/auth/logout'), accessToken).expect(204);
    };
    const displacedAudits = (): Promise<Record<string, unknown>[]> =>
      database.query(
        `SELECT domain, identifier, revoked_by_subject AS subject, revoked_by_client AS client
         FROM auth.revocation_audit WHERE because = 'displaced' ORDER BY audit_id`,
      );
    /** As if the sessions that have ended had ended so many hours before. */
    const age = (hours: number): Promise<unknown> =>
      database.query(
        "UPDATE auth.refresh_family SET revoked_at = revoked_at - $1::integer * interval '1 hour' WHERE revoked_at IS NOT NULL",
        [hours],
      );
    const sidsLeft = async (): Promise<string[]> =>
      (await database.query<{ sid: string }>('SELECT family_id AS sid FROM auth.refresh_family')).map(
        ({ sid }) => sid,
      );

    it('end beyond the limit, the oldest first, with an audit row, and those of other applications stay', async () => {
      const before = (await displacedAudits()).length;
      const sessions: Session[] = [];
      for (let n = 0; n < SESSIONS_PER_USER + 2; n += 1) sessions.push(await signIn());
      await database.query(
        `INSERT INTO auth.refresh_family (family_id, subject, application_key, flow, persona_limit, auth_time, created_at)
         VALUES ($1, 'personid:1001', 'other', 'user', 2, now(), now() - interval '30 days')`,
        [randomUUID()],
      );
      await bound();
      const live = await database.query<{ key: string; sessions: number }>(
        `SELECT application_key AS key, count(*)::int AS sessions FROM auth.refresh_family
         WHERE revoked_at IS NULL GROUP BY 1 ORDER BY 1`,
      );
      expect(live).toEqual([
        { key: 'demo-backend', sessions: SESSIONS_PER_USER },
        { key: 'other', sessions: 1 },
      ]);
      for (const [n, { refreshToken }] of sessions.entries())
        await expectOutcome(refresh(refreshToken), n < 2 ? revoked : ok);
      expect(await metric('auth_purged_rows_total{kind="displaced-sessions"}')).toBe(2);
      const audited = (await displacedAudits()).slice(before);
      expect(audited.map(({ identifier }) => identifier).toSorted()).toEqual(
        sessions
          .slice(0, 2)
          .map(({ sid }) => sid)
          .toSorted(),
      );
      const common = { domain: 'refresh-family', subject: 'personid:1001', client: 'demo-backend' };
      for (const row of audited) expect(row).toMatchObject(common);
    });

    it('that were logged out displace none that lives', async () => {
      const live: Session[] = [];
      for (let n = 0; n < SESSIONS_PER_USER; n += 1) live.push(await signIn());
      for (let n = 0; n < SESSIONS_PER_USER + 2; n += 1) await logOut(await signIn());
      await bound();
      for (const { refreshToken } of live) await expectOutcome(refresh(refreshToken), ok);
    });

    it('that were displaced do not come back, can be ended by their sid, and a used token of theirs is refused as revoked', async () => {
      const { sid, accessToken, refreshToken: used } = await signIn();
      const refreshToken = await refreshed(used);
      for (let n = 0; n < SESSIONS_PER_USER; n += 1) await signIn();
      await bound();
      for (const replica of [0, 1] as const) await expectOutcome(exchange(accessToken, replica), revoked);
      for (const token of [used, refreshToken]) await expectOutcome(refresh(token), revoked);
      const [other] = [await signIn()];
      await bearerOf(agentOf(replicas[0]).delete(`/auth/sessions/${sid}`), other.accessToken).expect(204);
    });

    it('that have ended are kept until none of their access tokens lives, and the newest beyond that', async () => {
      const ended = [await signIn()];
      await addUsed(ended[0]!.sid, BACKLOG);
      for (let n = 0; n < SESSIONS_PER_USER + 1; n += 1) ended.push(await signIn());
      for (const session of ended) {
        await logOut(session);
        await age(1);
      }
      await signIn();
      await bound();
      expect(await sidsLeft()).toHaveLength(ended.length + 1);
      await age(20);
      await signIn();
      await Promise.all([bound(0), bound(1)]);
      const left = await sidsLeft();
      // The oldest had ended before 25 hours; the next one has not, and the others are the newest.
      expect(ended.map(({ sid }) => left.includes(sid))).toEqual([false, true, true, true, true]);
      expect(await tokensOf(ended[0]!.sid)).toBe(0);
      expect(await metric('auth_purged_rows_total{kind="ended-sessions"}')).toBe(1);
      await expectOutcome(refresh(ended[1]!.refreshToken), revoked);
      await age(20);
      await signIn();
      await bound();
      expect(ended.map(({ sid }) => left.includes(sid))).toEqual([false, true, true, true, true]);
      const last = await sidsLeft();
      expect(ended.map(({ sid }) => last.includes(sid))).toEqual([false, false, true, true, true]);
    }, 600_000);
  });

  it('exchanges in a session with very many refresh tokens give an access token only', async () => {
    const { sid, accessToken } = await signIn();
    const exchange = async (): Promise<Session> => {
      const sent = bearerOf(agentOf(replicas[0]).post('/auth/token/bearer'), accessToken);
      const { status, body } = await sent;
      expect(status).toBe(200);
      return body as Session;
    };
    await addUsed(sid, 498);
    const withheld = await metric('auth_refresh_tokens_withheld_total');
    expect((await exchange()).refreshToken).not.toBeNull();
    expect(await exchange()).toMatchObject({ accessToken: expect.any(String), refreshToken: null });
    expect(await metric('auth_refresh_tokens_withheld_total')).toBe(withheld + 1);
    // Pruned, the session has room again.
    await bound();
    expect((await exchange()).refreshToken).not.toBeNull();
  });
});
