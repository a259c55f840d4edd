import { administrator } from './admin-fixture';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { eventually } from '@platform/testing';
import { Client } from 'pg';
import {
  PASSWORD,
  agentOf,
  bearerOf,
  claimsOf,
  expectOutcome,
  headerOf,
  startAuthService,
  startReplica,
} from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Tokens {
  accessToken: string;
  refreshToken: string | null;
}

describe('authority that an exchange leaves out is never restored by a refresh', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  const signIn = async (user: string): Promise<Tokens> =>
    (await service.post('/auth/token/user', { user, password: PASSWORD }).expect(200)).body;
  const exchange = async ({ accessToken }: Tokens): Promise<Tokens> =>
    (await bearerOf(service.post('/auth/token/bearer'), accessToken).expect(200)).body;
  const refresh = async ({ refreshToken }: Tokens): Promise<Tokens> =>
    (await service.post('/auth/token/refresh', { refreshToken }).expect(200)).body;
  const setPersonas = (personas: number): Promise<unknown> =>
    service.database.query('UPDATE person_directory.person SET personas = $1 WHERE person_id = 1002', [
      personas,
    ]);

  it('exchanging a token with all of its user’s authority returns a refresh token', async () => {
    const exchanged = await exchange(await signIn('carl.customer'));
    expect(claimsOf(exchanged.accessToken)['facilities']).toEqual([501, 502]);
    expect(exchanged.refreshToken).toEqual(expect.any(String));
    expect(claimsOf((await refresh(exchanged)).accessToken)['facilities']).toEqual([501, 502]);
  });

  it('exchanging a token with less authority returns none', async () => {
    const [gone] = await service.database.query<{ persona: number | null }>(
      'DELETE FROM person_directory.person_facility WHERE person_id = 1001 AND facility_id = 502 RETURNING persona',
    );
    const narrow = await signIn('carl.customer');
    await service.database.query('INSERT INTO person_directory.person_facility VALUES (1001, 502, $1)', [
      gone?.persona ?? null,
    ]);
    const exchanged = await exchange(narrow);
    expect(claimsOf(exchanged.accessToken)['facilities']).toEqual([501]);
    expect(exchanged.refreshToken).toBeNull();
  });

  it('exchanging a token with fewer personas than its session began with returns none', async () => {
    await setPersonas(18);
    const wide = await signIn('olga.owner');
    expect(claimsOf(wide.accessToken)['personas']).toBe(18);
    await setPersonas(16);
    const narrow = await refresh(wide);
    await setPersonas(18);
    const exchanged = await exchange(narrow);
    expect(claimsOf(exchanged.accessToken)['personas']).toBe(16);
    expect(exchanged.refreshToken).toBeNull();
    await setPersonas(16);
  });

  describe('when the first two exchanges of one session are concurrent', () => {
    const applicationKey = 'refreshes-later';
    let second: NestFastifyApplication;
    beforeAll(async () => {
      second = await startReplica(service.database.url);
      await administrator(service.database.ownerUrl).json(
        `applications create ${applicationKey} --personas all --flows all`,
      );
      await service.database.query(`
        CREATE FUNCTION auth.hold_commit() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON auth.refresh_family DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION auth.hold_commit()`);
    });
    afterAll(async () => {
      await service.database.query('DROP FUNCTION auth.hold_commit() CASCADE');
      await second.close();
    });

    const allowRefresh = (allowed: boolean): Promise<unknown> =>
      service.database.query('UPDATE auth.application SET allow_refresh = $2 WHERE application_key = $1', [
        applicationKey,
        allowed,
      ]);
    const exchangeAt = async (replica: NestFastifyApplication, accessToken: string): Promise<Tokens> =>
      (await bearerOf(agentOf(replica).post('/auth/token/bearer'), accessToken).expect(200)).body;

    /**
     * Returns two access tokens of one session without a refresh token: one for both personas, one for Owner
     * only.
     */
    async function tokensOfOneSession(): Promise<{ wide: string; narrow: string }> {
      await allowRefresh(false);
      await setPersonas(18);
      const sent = service.post('/auth/token/user', { user: 'olga.owner', password: PASSWORD });
      const { accessToken: wide } = (await sent.set('X-Application-Key', applicationKey).expect(200))
        .body as Tokens;
      await setPersonas(16);
      const { accessToken: narrow } = await exchangeAt(service.app, wide);
      expect(claimsOf(narrow)).toMatchObject({ personas: 16, sid: claimsOf(wide)['sid'] });
      await setPersonas(18);
      await allowRefresh(true);
      return { wide, narrow };
    }

    async function expectNoMoreThan(personas: number, exchanged: Tokens): Promise<void> {
      expect(claimsOf(exchanged.accessToken)['personas']).toBe(personas);
      if (exchanged.refreshToken === null) return;
      const refreshed = claimsOf((await refresh(exchanged)).accessToken)['personas'] as number;
      expect(refreshed & ~personas).toBe(0);
    }

    const waiting = async (event: string, count: number): Promise<void> =>
      eventually(async () => {
        const rows = await service.database.querySuperuser(
          'SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = $1',
          [event],
        );
        expect(rows).toHaveLength(count);
      });

    it.each(['wide', 'narrow'] as const)(
      'on two replicas, the %s one first: no refresh exceeds its own token',
      async (which) => {
        const tokens = await tokensOfOneSession();
        const [early, late] = which === 'wide' ? [tokens.wide, tokens.narrow] : [tokens.narrow, tokens.wide];
        const holder = new Client({ connectionString: service.database.ownerUrl });
        await holder.connect();
        await holder.query('SELECT pg_advisory_lock(4711)');
        const one = exchangeAt(service.app, early);
        await waiting('advisory', 1);
        const other = exchangeAt(second, late);
        await waiting('transactionid', 1);
        await holder.end();
        const [first, last] = [await one, await other];
        expect(first.refreshToken).toEqual(expect.any(String));
        await expectNoMoreThan(which === 'wide' ? 18 : 16, first);
        await expectNoMoreThan(which === 'wide' ? 16 : 18, last);
      },
    );

    it('on one replica: no refresh exceeds its own token', async () => {
      for (let round = 0; round < 5; round += 1) {
        const { wide, narrow } = await tokensOfOneSession();
        const [first, last] = await Promise.all([exchangeAt(second, wide), exchangeAt(second, narrow)]);
        await expectNoMoreThan(18, first);
        await expectNoMoreThan(16, last);
      }
      await setPersonas(16);
    });
  });

  it('the full identity never exceeds the token, except in claims that did not fit into it', async () => {
    const { accessToken } = await signIn('carl.customer');
    const me = async (): Promise<object> => (await service.get('/auth/me', accessToken).expect(200)).body;
    await service.database.query(
      `INSERT INTO person_directory.person_role VALUES (1001, 'CustomerGlobalAdministrator')`,
    );
    await service.database.query('INSERT INTO person_directory.person_facility VALUES (1001, 777)');
    expect(await me()).toMatchObject({ roles: [], facilities: [501, 502] });
    const { body } = await service.post('/auth/token/user', { user: 'carl.customer', password: PASSWORD });
    const again = await service.get('/auth/me', (body as Tokens).accessToken);
    expect(again.body).toMatchObject({ roles: ['CustomerGlobalAdministrator'], facilities: [501, 502, 777] });
    await service.database.query(`DELETE FROM person_directory.person_role WHERE person_id = 1001`);
    await service.database.query('DELETE FROM person_directory.person_facility WHERE facility_id = 777');
    expect((await service.get('/auth/me', (body as Tokens).accessToken)).body).toMatchObject({
      roles: [],
      facilities: [501, 502],
    });
  });

  it('a repeated refresh is refused after the user is revoked by an identifier linked after the sign-in', async () => {
    const first = await signIn('olga.owner');
    await service.database.query(
      `INSERT INTO internal_legacy.internal_user (user_name, user_name_key, display_name, user_id, person_id)
       VALUES ('olga.internal', 'olga.internal', 'Olga', 9100, 1002)`,
    );
    await refresh(first);
    await administrator(service.database.ownerUrl).json('revocations set internal-legacy 9100');
    const again = service.post('/auth/token/refresh', { refreshToken: first.refreshToken });
    await expectOutcome(again, { status: 401, reason: 6 });
  });
});

describe('an exchange is refused although the replica still accepts the token', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService({
      environment: { ACCESS_TOKEN_DEFAULT_SIGNING: 'asymmetric', SIGNING_KEYS_RELOAD_MS: '60000' },
    });
  });
  afterAll(() => service.stop());

  const signIn = async (): Promise<string> => {
    const login = service.post('/auth/token/user', { user: 'carl.customer', password: PASSWORD });
    return (await login.expect(200)).body.accessToken;
  };
  const expectRefused = async (token: string): Promise<void> => {
    await service.get('/auth/me', token).expect(200);
    const exchange = bearerOf(service.post('/auth/token/bearer'), token);
    await expectOutcome(exchange, { status: 401, reason: 6 });
  };

  it('of a session that has ended, after its revocation was purged', async () => {
    const token = await signIn();
    await service.database.query(
      'UPDATE auth.refresh_family SET revoked_at = now() WHERE family_id = $1::uuid',
      [claimsOf(token)['sid']],
    );
    await expectRefused(token);
  });

  it('signed with a removed key, before the replica reloads its keys', async () => {
    const token = await signIn();
    await bearerOf(service.post('/auth/token/bearer'), token).expect(200);
    const kid = String(headerOf(token).kid);
    await administrator(service.database.ownerUrl).json(`keys retire ${kid} --force`);
    await administrator(service.database.ownerUrl).json(`keys remove ${kid} --force`);
    await expectRefused(token);
  });
});
