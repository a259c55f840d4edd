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

/** Number of used refresh tokens of one session: enough for more than two statements. */
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

describe('limits on one user’s sessions and refresh tokens, on two replicas', () => {
  let database: TestDatabase;
  let replicas: [NestFastifyApplication, NestFastifyApplication];
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    replicas = [
      await startReplica(database.url, { environment: ENVIRONMENT }),
      await startReplica(database.url, { environment: ENVIRONMENT }),
    ];
    // Makes statements that delete more than 10,000 rows fail, because they might exceed the statement
    // timeout.
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

  /** Adds used tokens to a session, a second apart. The newest was issued two hours ago. */
  const addUsed = async (sid: string, count: number): Promise<void> => {
    await database.query(
      `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at, rotated_at, successor_jti, rotated_in)
       SELECT gen_random_uuid(), $1, at, at + interval '365 days', at + interval '1 second', gen_random_uuid(), 3
       FROM generate_series(1, $2::integer) AS n,
         LATERAL (SELECT date_trunc('second', now()) - interval '2 hours' - n * interval '1 second' AS at) AS issued`,
      [sid, count],
    );
  };
  /** Returns the oldest token of a session, as its client would present it. */
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
    it('are pruned in small statements except the newest, and reusing a pruned one still ends its session', async () => {
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

    it('are unknown without a row if only older ones were pruned', async () => {
      const { sid, refreshToken } = await signIn();
      await addUsed(sid, 300);
      const next = await refreshed(refreshToken);
      await bound();
      await database.query('DELETE FROM auth.refresh_token WHERE jti = $1', [claimsOf(refreshToken).jti]);
      await expectOutcome(refresh(refreshToken), unknown);
      await expectOutcome(refresh(next), ok);
    });

    it('are kept while one of them may be presented again, or may have committed late', async () => {
      const { sid, refreshToken } = await signIn();
      await addUsed(sid, 300);
      const late = new Client({ connectionString: database.ownerUrl });
      await late.connect();
      await late.query('BEGIN');
      const { rows } = await late.query<{ xid: string }>('SELECT pg_current_xact_id()::text AS xid');
      // Makes the oldest token look rotated two hours ago by a transaction that has not ended yet.
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
      'are kept while the clocks of the database and the replica differ by %d ms, and pruned once they agree',
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

    it('that cannot be deleted do not block other sessions', async () => {
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
    it('of one session are limited per hour across both replicas, and the same token works later', async () => {
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
      // A refresh whose response was lost can still be repeated, and other sessions are not affected.
      expect(await refreshed(used)).toBe(token);
      await refreshed((await signIn()).refreshToken);
      await database.query(
        `UPDATE auth.refresh_token SET issued_at = issued_at - interval '1 hour' WHERE family_id = $1 AND rotated_at IS NOT NULL`,
        [sid],
      );
      await refreshed(token);
    });

    it('of one token that are concurrent all get the same successor', async () => {
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
    /** Shifts the end of the ended sessions into the past. */
    const age = (hours: number): Promise<unknown> =>
      database.query(
        "UPDATE auth.refresh_family SET revoked_at = revoked_at - $1::integer * interval '1 hour' WHERE revoked_at IS NOT NULL",
        [hours],
      );
    const remainingSids = async (): Promise<string[]> =>
      (await database.query<{ sid: string }>('SELECT family_id AS sid FROM auth.refresh_family')).map(
        ({ sid }) => sid,
      );

    it('end beyond the limit, the oldest first, with an audit row, but not those of other applications', async () => {
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

    it('that were logged out displace no live one', async () => {
      const live: Session[] = [];
      for (let n = 0; n < SESSIONS_PER_USER; n += 1) live.push(await signIn());
      for (let n = 0; n < SESSIONS_PER_USER + 2; n += 1) await logOut(await signIn());
      await bound();
      for (const { refreshToken } of live) await expectOutcome(refresh(refreshToken), ok);
    });

    it('that were displaced stay ended, can be ended by their sid, and their used tokens are refused as revoked', async () => {
      const { sid, accessToken, refreshToken: used } = await signIn();
      const refreshToken = await refreshed(used);
      for (let n = 0; n < SESSIONS_PER_USER; n += 1) await signIn();
      await bound();
      for (const replica of [0, 1] as const) await expectOutcome(exchange(accessToken, replica), revoked);
      for (const token of [used, refreshToken]) await expectOutcome(refresh(token), revoked);
      const [other] = [await signIn()];
      await bearerOf(agentOf(replicas[0]).delete(`/auth/sessions/${sid}`), other.accessToken).expect(204);
    });

    it('that have ended are kept until their access tokens expire, and the newest even longer', async () => {
      const ended = [await signIn()];
      await addUsed(ended[0]!.sid, BACKLOG);
      for (let n = 0; n < SESSIONS_PER_USER + 1; n += 1) ended.push(await signIn());
      for (const session of ended) {
        await logOut(session);
        await age(1);
      }
      await signIn();
      await bound();
      expect(await remainingSids()).toHaveLength(ended.length + 1);
      await age(20);
      await signIn();
      await Promise.all([bound(0), bound(1)]);
      const remaining = await remainingSids();
      // The oldest ended more than 25 hours ago. The next one did not, and the others are the newest.
      expect(ended.map(({ sid }) => remaining.includes(sid))).toEqual([false, true, true, true, true]);
      expect(await tokensOf(ended[0]!.sid)).toBe(0);
      expect(await metric('auth_purged_rows_total{kind="ended-sessions"}')).toBe(1);
      await expectOutcome(refresh(ended[1]!.refreshToken), revoked);
      await age(20);
      await signIn();
      await bound();
      expect(ended.map(({ sid }) => remaining.includes(sid))).toEqual([false, true, true, true, true]);
      const last = await remainingSids();
      expect(ended.map(({ sid }) => last.includes(sid))).toEqual([false, false, true, true, true]);
    }, 600_000);
  });

  it('exchanges in a session with very many refresh tokens return only an access token', async () => {
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
    // After pruning, the session may have refresh tokens again.
    await bound();
    expect((await exchange()).refreshToken).not.toBeNull();
  });
});
