import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createTestDatabase, eventually, permitFaults, startPrivatePostgresql } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { Client } from 'pg';
import {
  BACKEND,
  agentOf,
  bearerOf,
  claimsOf,
  migrateWithIdentities,
  postTo,
  startReplica,
} from './auth-fixture';

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

interface RefreshResponse extends Tokens {
  status: number;
  reason: number | undefined;
}

/**
 * Time in seconds for which commits are held. It exceeds the overlap of every validator's polls, and the time
 * in which a rotated refresh token may be presented again.
 */
const HELD_SECONDS = 62;

describe('commits that wait over a minute for a synchronous standby, on two replicas', () => {
  let postgresql: Awaited<ReturnType<typeof startPrivatePostgresql>>;
  let database: TestDatabase;
  let first: NestFastifyApplication;
  let second: NestFastifyApplication;
  let superuser: Client;
  beforeAll(async () => {
    postgresql = await startPrivatePostgresql();
    database = await createTestDatabase({ migrate: migrateWithIdentities, server: postgresql.server.url });
    superuser = new Client({ connectionString: postgresql.server.url });
    await superuser.connect();
    first = await startReplica(database.url);
    second = await startReplica(database.url);
  }, 120_000);
  afterAll(async () => {
    await first.close();
    await second.close();
    await superuser.end();
    await database.drop();
    await postgresql.stop();
  }, 60_000);

  const signIn = async (userName: string, persona: number): Promise<Tokens> => {
    const { status, body } = await postTo(first, '/auth/token/trust-simple', {
      ...BACKEND,
      persona,
      userName,
    });
    expect(status).toBe(200);
    return body as Tokens;
  };
  const refresh = async ({ refreshToken }: Tokens, replica = first): Promise<RefreshResponse> => {
    const { status, body } = await postTo(replica, '/auth/token/refresh', { refreshToken });
    return { status, reason: body.rejectionReason, ...body };
  };
  const me = async ({ accessToken }: Tokens, replica: NestFastifyApplication): Promise<number> =>
    (await bearerOf(agentOf(replica).get('/auth/me'), accessToken)).status;

  const revoke = async (key: string, { accessToken }: Tokens): Promise<number> =>
    (await bearerOf(agentOf(second).put(`/auth/revocations/${key}`), accessToken)).status;

  /** Starts a delay of `seconds` on the database's clock, and resolves to a promise of its end. */
  async function startDelay(seconds: number): Promise<{ passed: Promise<void> }> {
    const { rows } = await superuser.query<{ at: Date }>(`SELECT now() + $1 * interval '1 second' AS at`, [
      seconds,
    ]);
    const passed = eventually(
      async () => {
        const { rows: now } = await superuser.query<{ due: boolean }>(
          'SELECT now() > $1::timestamptz AS due',
          [rows[0]!.at],
        );
        expect(now[0]!.due).toBe(true);
      },
      { timeoutMs: (seconds + 30) * 1_000, intervalMs: 500 },
    );
    return { passed };
  }

  /** Counts requests that wait for another transaction to end. */
  const waitingRequests = async (): Promise<number> => {
    const { rows } = await superuser.query<{ waiting: number }>(
      `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event IN ('transactionid', 'tuple')`,
    );
    return rows[0]!.waiting;
  };

  const waitingCommits = async (): Promise<number> => {
    const { rows } = await superuser.query<{ waiting: number }>(
      `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
    );
    return rows[0]!.waiting;
  };
  const reload = async (statement: string): Promise<void> => {
    await superuser.query(statement);
    await superuser.query('SELECT pg_reload_conf()');
  };

  /** Makes every later commit wait until `release` is called. */
  async function holdCommits(): Promise<{ release: () => Promise<void> }> {
    await reload(`ALTER SYSTEM SET synchronous_standby_names = 'absent'`);
    const probe = new Client({ connectionString: database.ownerUrl });
    await probe.connect();
    // The setting is in effect once a commit waits.
    let held: Promise<unknown> = Promise.resolve();
    let isHeld = false;
    while (!isHeld) {
      let isOver = false;
      held = probe.query('CREATE TABLE IF NOT EXISTS probe (); DROP TABLE probe').then(() => (isOver = true));
      await eventually(async () => {
        isHeld = (await waitingCommits()) > 0;
        expect(isHeld || isOver).toBe(true);
      });
    }
    const release = async (): Promise<void> => {
      await reload('ALTER SYSTEM RESET synchronous_standby_names');
      await held;
      await probe.end();
    };
    return { release };
  }

  it('end no session of a client that retries, and every validator reads the revocation', async () => {
    const carl = await signIn('carl.customer', 2);
    const olga = await signIn('olga.owner', 16);
    const rita = await signIn('rita.resident', 8);
    const ivy = await signIn('ivy.internal', 1);
    const revoked = {
      jti: claimsOf(olga.accessToken).jti as string,
      sid: claimsOf(rita.accessToken).sid as string,
    };
    // For comparison, a rotation that commits in time.
    const gina = await signIn('gina.global', 2);
    expect((await refresh(gina)).status).toBe(200);

    // The service logs that the database did not respond in time.
    permitFaults();
    const { release } = await holdCommits();
    try {
      const rotating = refresh(carl);
      const revoking = Object.entries(revoked).map(([domain, identifier]) =>
        revoke(`${domain}/${identifier}`, ivy),
      );
      await eventually(async () => expect(await waitingCommits()).toBeGreaterThanOrEqual(4));
      const { passed } = await startDelay(HELD_SECONDS);
      expect(await Promise.all([rotating.then(({ status }) => status), ...revoking])).toEqual([
        503, 503, 503,
      ]);
      await passed;
    } catch (error) {
      await release();
      throw error;
    }
    // These requests wait for the rotation, and are the first to see it.
    const waiters = [refresh(carl, first), refresh(carl, second)];
    await eventually(async () => expect(await waitingRequests()).toBeGreaterThanOrEqual(2)).finally(release);
    const answers = await Promise.all(waiters);
    let renewed: RefreshResponse | undefined;
    for (let tries = 0; renewed === undefined && tries < 100; tries += 1) {
      const answer = await refresh(carl, tries % 2 === 0 ? first : second);
      answers.push(answer);
      if (answer.status === 200) renewed = answer;
    }
    expect(new Set(answers.map(({ status }) => status))).not.toContain(401);
    expect((await refresh(renewed!)).reason).toBe(0);

    // A rotation that committed in time can no longer be repeated.
    expect(await refresh(gina)).toMatchObject({ status: 401, reason: 6 });
    for (const replica of [first, second])
      await eventually(async () => {
        expect(await me(olga, replica)).toBe(401);
        expect(await me(rita, replica)).toBe(401);
      });
    await eventually(async () => {
      const unconfirmed = await database.query('SELECT FROM auth.revocations WHERE NOT confirmed');
      expect(unconfirmed).toHaveLength(0);
    });
  }, 240_000);
});
