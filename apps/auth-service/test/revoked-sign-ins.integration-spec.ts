import { once } from 'node:events';
import { hash as argon2 } from '@node-rs/argon2';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createTrustRequest } from '@platform/auth-client';
import { eventually } from '@platform/testing';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { CombinedStoresRepository } from '../src/identity/combined-stores.repository';
import { BACKEND, PASSWORD, REPORTS, bearerOf, postTo, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Outcome {
  status: number;
  reason: number | undefined;
}

const INTERRUPTED = { status: 503, reason: undefined };
const SIGNED_IN = { status: 200, reason: 0 };
const NEW_PASSWORD = 'N3w-Passw0rd!!';
const RITA = { user: 'rita.resident', password: PASSWORD };

describe('a sign-in that is in progress during a revocation', () => {
  let service: AuthFixture;
  let holder: Client;
  let admin: string;
  let stranger: string;
  beforeAll(async () => {
    service = await startAuthService();
    holder = new Client({ connectionString: service.database.ownerUrl });
    await holder.connect();
    await query(
      `UPDATE auth.application SET allow_administrators = true WHERE application_key = 'demo-reports'`,
    );
    admin = await tokenOf('gina.global', REPORTS);
    stranger = await tokenOf('carl.customer', REPORTS);
  });
  beforeEach(() => service.database.query('DELETE FROM auth.revocations'));
  afterAll(async () => {
    await holder.end();
    await service.stop();
  });

  const signInFor = (application: object, userName: string): Promise<Outcome & { accessToken: string }> =>
    service
      .post('/auth/token/trust-simple', { ...application, persona: 2, userName })
      .then(({ status, body }) => ({ status, reason: body.rejectionReason, accessToken: body.accessToken }));

  async function tokenOf(userName: string, application: object): Promise<string> {
    const { status, accessToken } = await signInFor(application, userName);
    expect(status).toBe(200);
    return accessToken;
  }

  const login = (body: object): Promise<Outcome> =>
    service
      .post('/auth/token/user', body)
      .then(({ status, body: answer }) => ({ status, reason: answer.rejectionReason as number | undefined }));

  async function revoke(key: string, token = admin): Promise<void> {
    expect((await bearerOf(service.put(`/auth/revocations/${key}`), token)).status).toBe(200);
  }

  const query = (statement: string, parameters: unknown[] = []): Promise<unknown> =>
    service.database.query(statement, parameters);

  /**
   * Returns the outcomes of sign-ins whose password was verified before `change`, and that continue after it.
   */
  async function outcomesAround(
    change: () => Promise<void>,
    bodies: readonly object[] = [RITA],
  ): Promise<Outcome[]> {
    await holder.query('BEGIN');
    // A sign-in accesses this table after verifying the password.
    await holder.query('LOCK TABLE auth.password_lockout IN ACCESS EXCLUSIVE MODE');
    const signingIn = Promise.all(bodies.map(login));
    try {
      await eventually(async () => {
        const [row] = await service.database.querySuperuser<{ waiting: number }>(
          `SELECT count(*)::int AS waiting FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        expect(row!.waiting).toBe(bodies.length);
      });
      await change();
    } finally {
      await holder.query('COMMIT');
    }
    return signingIn;
  }

  describe('with a password that was replaced before the revocation', () => {
    let oldHash: string;
    beforeAll(async () => {
      const [row] = await service.database.query<{ password_hash: string }>(
        'SELECT password_hash FROM person_directory.person WHERE person_id = 1003',
      );
      oldHash = row!.password_hash;
    });
    const setHash = (hash: string): Promise<unknown> =>
      query('UPDATE person_directory.person SET password_hash = $1 WHERE person_id = 1003', [hash]);
    afterEach(() => setHash(oldHash));

    it.each(['svc-personid/1003', 'sub/personid:1003'])(
      'gets no token once %s is acknowledged as revoked',
      async (key) => {
        const outcomes = await outcomesAround(async () => {
          await setHash(await argon2(NEW_PASSWORD));
          await revoke(key);
        }, [RITA, { ...RITA, sharedSecret: BACKEND.sharedSecret }]);
        expect(outcomes).toEqual([INTERRUPTED, INTERRUPTED]);
        expect(await login(RITA)).toEqual({ status: 401, reason: 1 });
        expect(await login({ ...RITA, password: NEW_PASSWORD })).toEqual(SIGNED_IN);
      },
    );
  });

  it('may start as soon as the revocation is acknowledged, and takes at most a second longer', async () => {
    await revoke('svc-personid/1003');
    const begun = performance.now();
    const outcomes = await Promise.all([login(RITA), login(RITA)]);
    expect(outcomes).toEqual([SIGNED_IN, SIGNED_IN]);
    expect(performance.now() - begun).toBeLessThan(2_500);
  });

  it('continues after a revocation by another user', async () => {
    expect(await outcomesAround(() => revoke('svc-personid/1003', stranger))).toEqual([SIGNED_IN]);
  });

  describe('for an application', () => {
    const signIn = { ...RITA, sharedSecret: BACKEND.sharedSecret };
    const secret = `application_key = 'demo-backend' AND version = 1`;
    const setEnabled = (enabled: boolean): Promise<unknown> =>
      query(`UPDATE auth.application SET enabled = $1 WHERE application_key = 'demo-backend'`, [enabled]);
    afterEach(async () => {
      await setEnabled(true);
      await query(`UPDATE auth.application_secret SET expires_at = NULL WHERE ${secret}`);
    });

    it.each([
      ['is disabled', () => Promise.resolve()],
      ['is disabled and revoked', () => revoke('client_id/demo-backend')],
    ])('that %s gets no token', async (_, alsoRevoke) => {
      const outcomes = await outcomesAround(async () => {
        await setEnabled(false);
        await alsoRevoke();
      }, [RITA, signIn]);
      for (const { status, reason } of outcomes)
        expect({ status, reason }).toEqual({ status: 422, reason: 8 });
    });

    it('whose secret has expired and that is revoked gets no token', async () => {
      const outcomes = await outcomesAround(async () => {
        await query(`UPDATE auth.application_secret SET expires_at = now() WHERE ${secret}`);
        await revoke('client_id/demo-backend');
      }, [signIn]);
      expect(outcomes).toEqual([INTERRUPTED]);
      expect(await login(signIn)).toEqual({ status: 401, reason: 1 });
    });

    it('that is revoked and keeps its secret continues, because the proof is still valid', async () => {
      expect(await outcomesAround(() => revoke('client_id/demo-backend'), [RITA, signIn])).toEqual([
        SIGNED_IN,
        SIGNED_IN,
      ]);
    });
  });

  it('is aborted if its application loses its secret and is revoked while it waits for the next second', async () => {
    const { applicationKey } = REPORTS;
    const expire = (at: string): Promise<unknown> =>
      query(`UPDATE auth.application_secret SET expires_at = ${at} WHERE application_key = $1`, [
        applicationKey,
      ]);
    const backendAdmin = await tokenOf('gina.global', BACKEND);
    // Tries again if the second was over too early, or the secret was gone before it was read.
    await eventually(async () => {
      await expire('NULL');
      await revoke('svc-personid/1001', backendAdmin);
      const signingIn = signInFor(REPORTS, 'carl.customer');
      await expire('now()');
      await revoke(`client_id/${applicationKey}`, backendAdmin);
      expect(await signingIn).toMatchObject(INTERRUPTED);
    });
    await expire('NULL');
  }, 60_000);
});

describe('a trust sign-in with identity stores in a separate database', () => {
  let service: AuthFixture;
  /** A replica whose identity stores have a separate connection pool. */
  let replica: NestFastifyApplication;
  beforeAll(async () => {
    service = await startAuthService();
    const url = new URL(service.database.url);
    url.searchParams.set('application_name', 'identities');
    replica = await startReplica(service.database.url, {
      environment: {
        PERSON_DIRECTORY_DATABASE_URL: url.href,
        INTERNAL_LEGACY_DATABASE_URL: url.href,
        SERVICE_PROVIDERS_DATABASE_URL: url.href,
      },
    });
  });
  afterAll(async () => {
    await replica.close();
    await service.stop();
  });

  const setDisabled = (disabled: boolean): Promise<unknown> =>
    service.database.query('UPDATE person_directory.person SET disabled = $1 WHERE person_id = 1001', [
      disabled,
    ]);
  afterEach(() => setDisabled(false));

  async function revoke(key: string): Promise<void> {
    const admin = await postTo(service.app, '/auth/token/trust-simple', {
      ...REPORTS,
      persona: 2,
      userName: 'gina.global',
    });
    expect((await service.put(`/auth/revocations/${key}`, admin.body.accessToken)).status).toBe(200);
  }

  /** Sends a request to the replica, and makes `change` while the replica's own database cannot respond. */
  async function sendAround(path: string, body: object, change: () => Promise<void>): Promise<Outcome> {
    const dataSource = replica.get(DataSource);
    const held = Array.from({ length: 5 }, () => dataSource.createQueryRunner());
    await Promise.all(held.map((runner) => runner.connect()));
    const received = once(replica.getHttpServer(), 'request');
    const sent = postTo(replica, path, body).then(({ status, body: answer }) => ({
      status,
      reason: answer.rejectionReason as number | undefined,
    }));
    try {
      await received;
      // The request's first look-ups in the identity stores have completed before these.
      const stores = replica.get(CombinedStoresRepository);
      for (let n = 0; n < 10; n += 1) await stores.find({ by: 'user-name', userName: 'nobody' });
      await change();
    } finally {
      await Promise.all(held.map((runner) => runner.release()));
    }
    return sent;
  }

  const carl = { persona: 2, userName: 'carl.customer' };
  it.each([
    ['trust-simple', (): object => ({ ...BACKEND, ...carl })],
    [
      'trust',
      (): object =>
        createTrustRequest(
          { applicationKey: BACKEND.applicationKey, ...carl },
          BACKEND.sharedSecret,
          new Date(),
        ),
    ],
  ])('by %s fails after a revocation that came after the user was read', async (flow, body) => {
    const outcome = await sendAround(`/auth/token/${flow}`, body(), async () => {
      await setDisabled(true);
      await revoke('svc-personid/1001');
    });
    expect(outcome).toEqual({ status: 422, reason: 1 });
  });
});
