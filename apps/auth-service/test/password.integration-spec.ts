import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { PASSWORD, claimsOf, postTo, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('passwords', () => {
  let service: AuthFixture;
  let secondReplica: NestFastifyApplication;
  beforeAll(async () => {
    service = await startAuthService();
    secondReplica = await startReplica(service.database.url, {
      environment: { PASSWORD_HASH_CONCURRENCY: '1', PASSWORD_HASH_QUEUE: '1' },
    });
  });
  afterAll(async () => {
    await secondReplica.close();
    await service.stop();
  });

  const login = async (user: string, password: string, app = service.app): Promise<number> =>
    (await postTo(app, '/auth/token/user', { user, password })).status;

  async function lockoutOf(
    user: string,
  ): Promise<{ failures: number; lockouts: number; seconds: number } | undefined> {
    const [row] = await service.database.query<{ failures: number; lockouts: number; seconds: number }>(
      `SELECT failures, lockouts, round(extract(epoch FROM locked_until - now()))::int AS seconds
       FROM auth.password_lockout WHERE user_name_key = $1`,
      [user],
    );
    return row;
  }

  const endLock = (user: string): Promise<unknown> =>
    service.database.query(`UPDATE auth.password_lockout SET locked_until = now() WHERE user_name_key = $1`, [
      user,
    ]);

  it('upgrades a legacy hash at the first login, and only then', async () => {
    const hash = async (): Promise<string> => {
      const [row] = await service.database.query<{ password_hash: string }>(
        'SELECT password_hash FROM person_directory.person WHERE person_id = 1006',
      );
      return row!.password_hash;
    };
    const legacy = await hash();
    expect(legacy).toMatch(/^AQAAAAEAACcQ/);
    expect(await login('lena.legacy', 'wrong')).toBe(401);
    expect(await hash()).toBe(legacy);
    expect(await login('lena.legacy', PASSWORD)).toBe(200);
    const upgraded = await hash();
    expect(upgraded).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await login('lena.legacy', PASSWORD)).toBe(200);
    expect(await hash()).toBe(upgraded);
  });

  it('locks an account after five failures on whichever replica, for a minute, then twice as long', async () => {
    for (const app of [service.app, secondReplica, service.app, secondReplica]) {
      expect(await login('carl.customer', 'wrong', app)).toBe(401);
    }
    expect(await login('carl.customer', PASSWORD)).toBe(200);
    expect(await lockoutOf('carl.customer')).toBeUndefined();

    for (let failure = 1; failure <= 5; failure += 1) await login('carl.customer', 'wrong');
    expect(await lockoutOf('carl.customer')).toEqual({ failures: 0, lockouts: 1, seconds: 60 });
    expect(await login('carl.customer', PASSWORD, secondReplica)).toBe(401);
    await login('carl.customer', 'wrong');
    expect(await lockoutOf('carl.customer')).toMatchObject({ failures: 0, lockouts: 1 });

    await endLock('carl.customer');
    for (let failure = 1; failure <= 5; failure += 1) await login('carl.customer', 'wrong');
    expect(await lockoutOf('carl.customer')).toEqual({ failures: 0, lockouts: 2, seconds: 120 });
    await endLock('carl.customer');
    expect(await login('carl.customer', PASSWORD)).toBe(200);
    expect(await lockoutOf('carl.customer')).toBeUndefined();
  });

  it('never locks for longer than 15 minutes', async () => {
    await service.database.query(
      `INSERT INTO auth.password_lockout VALUES ('olga.owner', 4, 30, now() - interval '1 s', now())`,
    );
    await login('olga.owner', 'wrong');
    expect(await lockoutOf('olga.owner')).toEqual({ failures: 0, lockouts: 31, seconds: 900 });
  });

  it('counts unknown users like known ones', async () => {
    for (let failure = 1; failure <= 5; failure += 1) expect(await login('nobody', 'wrong')).toBe(401);
    expect(await lockoutOf('nobody')).toEqual({ failures: 0, lockouts: 1, seconds: 60 });
  });

  it('does not admit a burst of parallel guesses to more than the lock allows', async () => {
    const guesses = Array.from({ length: 12 }, () => login('rita.resident', 'wrong'));
    await Promise.all(guesses);
    expect(await lockoutOf('rita.resident')).toMatchObject({ lockouts: 1, failures: 0 });
    expect(await login('rita.resident', PASSWORD)).toBe(401);
  });

  it('answers 503 with Retry-After when too many hashes are waiting', async () => {
    const body = { user: 'tess.tech', password: PASSWORD };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => postTo(secondReplica, '/auth/token/user', body)),
    );
    const busy = answers.filter(({ status }) => status === 503);
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(2);
    expect(busy.length).toBeGreaterThan(0);
    expect(busy[0]?.type).toBe('application/problem+json');
    expect(busy[0]?.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' });
  });

  it('takes as long for unknown and passwordless users as for a wrong password', async () => {
    const median = async (user: string): Promise<number> => {
      const times: number[] = [];
      for (let round = 0; round < 7; round += 1) {
        const startedMs = performance.now();
        await login(user, 'wrong');
        times.push(performance.now() - startedMs);
      }
      return times.sort((a, b) => a - b)[3]!;
    };
    const [wrong, unknown, passwordless] = [
      await median('gina.global'),
      await median('nobody.2'),
      await median('svc.platform'),
    ];
    // A hash takes tens of milliseconds, everything else a few: half of it would show a path without a hash.
    expect(unknown).toBeGreaterThan(wrong / 2);
    expect(passwordless).toBeGreaterThan(wrong / 2);
  });

  it('unites the accounts of one person and asks before granting InternalPartner', async () => {
    await service.database.query(
      `INSERT INTO internal_legacy.internal_user (user_id, user_name, user_name_key, display_name, person_id)
       VALUES (9100, 'gina.global', 'gina.global', 'Gina', 1005)`,
    );
    const claims = async (query: string): Promise<object> => {
      const { body } = await service.post(`/auth/token/user${query}`, {
        user: 'gina.global',
        password: PASSWORD,
      });
      return claimsOf(body.accessToken);
    };
    await service.database.query('DELETE FROM auth.password_lockout');
    expect(await claims('')).toMatchObject({
      sub: 'personid:1005',
      personId: 1005,
      userId: 9100,
      personas: 2,
    });
    expect(await claims('?grantAsInternalPartner=true')).toMatchObject({ sub: 'personid:1005', personas: 3 });
    await service.database.query(
      'UPDATE internal_legacy.internal_user SET person_id = 1 WHERE user_id = 9100',
    );
    expect(await login('gina.global', PASSWORD)).toBe(401);
  });

  it('finds the other account of a person by its link, whatever it is called there', async () => {
    await service.database.query(
      `INSERT INTO internal_legacy.internal_user (user_id, user_name, user_name_key, display_name)
       VALUES (9200, 'o.internal', 'o.internal', 'O.')`,
    );
    await service.database.query('UPDATE person_directory.person SET user_id = 9200 WHERE person_id = 1002');
    await service.database.query('DELETE FROM auth.password_lockout');
    const body = { user: 'olga.owner', password: PASSWORD };
    const olga = await service.post('/auth/token/user?grantAsInternalPartner=true', body);
    expect(claimsOf(olga.body.accessToken)).toMatchObject({
      sub: 'personid:1002',
      userId: 9200,
      name: 'Olga Owner',
      personas: 17,
    });
    await service.database.query(
      'UPDATE internal_legacy.internal_user SET disabled = true WHERE user_id = 9200',
    );
    expect(await login('olga.owner', PASSWORD)).toBe(401);
  });
});
