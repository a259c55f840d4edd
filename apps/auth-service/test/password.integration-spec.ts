import { createHash, pbkdf2Sync } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { hash as argon2 } from '@node-rs/argon2';
import { hash as bcrypt } from '@node-rs/bcrypt';
import { Metrics } from '@platform/service-defaults';
import { ARGON2ID_COST } from '../src/identity/passwords/password-hash';
import { PurgeExpiredJob } from '../src/purges/purge-expired.job';
import { PASSWORD, claimsOf, postTo, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('passwords', () => {
  let service: AuthFixture;
  let smallReplica: NestFastifyApplication;
  beforeAll(async () => {
    service = await startAuthService();
    smallReplica = await startReplica(service.database.url, {
      environment: { PASSWORD_HASH_CONCURRENCY: '1', PASSWORD_HASH_QUEUE: '1' },
    });
  });
  afterAll(async () => {
    await smallReplica.close();
    await service.stop();
  });

  const login = async (user: string, password: string): Promise<number> =>
    (await service.post('/auth/token/user', { user, password })).status;

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

  async function hashOf(personId: number): Promise<string> {
    const [row] = await service.database.query<{ password_hash: string }>(
      'SELECT password_hash FROM person_directory.person WHERE person_id = $1',
      [personId],
    );
    return row!.password_hash;
  }

  const setHash = (personId: number, hash: string): Promise<unknown> =>
    service.database.query('UPDATE person_directory.person SET password_hash = $2 WHERE person_id = $1', [
      personId,
      hash,
    ]);

  const hashesSoFar = (): Promise<number> => counted('auth_password_hashes_total');

  async function counted(name: string): Promise<number> {
    const metric = service.app.get(Metrics).registry.getSingleMetric(name);
    const { values } = (await metric!.get()) as { values: { value: number }[] };
    return values[0]?.value ?? 0;
  }

  it('upgrades a legacy hash at the first login, and only then', async () => {
    const legacy = await hashOf(1006);
    expect(legacy).toMatch(/^AQAAAAEAACcQ/);
    expect(await login('lena.legacy', 'wrong')).toBe(401);
    expect(await hashOf(1006)).toBe(legacy);
    expect(await login('lena.legacy', PASSWORD)).toBe(200);
    const upgraded = await hashOf(1006);
    expect(upgraded).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await login('lena.legacy', PASSWORD)).toBe(200);
    expect(await hashOf(1006)).toBe(upgraded);
  });

  it('locks an account after five failures for a minute, then twice as long', async () => {
    for (let failure = 1; failure <= 4; failure += 1) expect(await login('carl.customer', 'wrong')).toBe(401);
    expect(await login('carl.customer', PASSWORD)).toBe(200);
    expect(await lockoutOf('carl.customer')).toBeUndefined();

    const lockouts = await counted('auth_password_lockouts_total');
    for (let failure = 1; failure <= 5; failure += 1) await login('carl.customer', 'wrong');
    expect(await lockoutOf('carl.customer')).toEqual({ failures: 0, lockouts: 1, seconds: 60 });
    expect(await login('carl.customer', PASSWORD)).toBe(401);
    await login('carl.customer', 'wrong');
    expect(await lockoutOf('carl.customer')).toMatchObject({ failures: 0, lockouts: 1 });
    expect(await counted('auth_password_lockouts_total')).toBe(lockouts + 1);

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

  it('treats a lock as over if a clock that was ahead set it', async () => {
    const lock = (): Promise<unknown> =>
      service.database.query(
        `INSERT INTO auth.password_lockout VALUES ('tess.tech', 0, 1, now() + interval '1 day', now())`,
      );
    await lock();
    expect(await login('tess.tech', PASSWORD)).toBe(200);
    expect(await lockoutOf('tess.tech')).toBeUndefined();
    await lock();
    await login('tess.tech', 'wrong');
    expect(await lockoutOf('tess.tech')).toEqual({ failures: 1, lockouts: 1, seconds: null });
    for (let failure = 2; failure <= 5; failure += 1) await login('tess.tech', 'wrong');
    expect(await lockoutOf('tess.tech')).toEqual({ failures: 0, lockouts: 2, seconds: 120 });
    await endLock('tess.tech');
    expect(await login('tess.tech', PASSWORD)).toBe(200);
  });

  it('counts failures of unknown users like those of known ones', async () => {
    for (let failure = 1; failure <= 5; failure += 1) expect(await login('nobody', 'wrong')).toBe(401);
    expect(await lockoutOf('nobody')).toEqual({ failures: 0, lockouts: 1, seconds: 60 });
  });

  it('purges the failures of a name, known or not, an hour after the last one', async () => {
    await service.database.query('DELETE FROM auth.password_lockout');
    await service.database.query(
      `INSERT INTO auth.password_lockout VALUES
         ('invented', 1, 0, NULL, now() - interval '61 minutes'), ('olga.owner', 4, 3, NULL, now() - interval '61 minutes'),
         ('invented.2', 1, 0, NULL, now() - interval '59 minutes'), ('tess.tech', 4, 3, NULL, now() - interval '59 minutes')`,
    );
    await service.app.get(PurgeExpiredJob).run();
    expect(await lockoutOf('invented')).toBeUndefined();
    expect(await lockoutOf('olga.owner')).toBeUndefined();
    expect(await lockoutOf('invented.2')).toMatchObject({ failures: 1, lockouts: 0 });
    expect(await lockoutOf('tess.tech')).toMatchObject({ failures: 4, lockouts: 3 });
    await service.database.query('DELETE FROM auth.password_lockout');
  });

  it('does not admit a burst of parallel guesses to more than the lock allows', async () => {
    const guesses = Array.from({ length: 12 }, () => login('rita.resident', 'wrong'));
    await Promise.all(guesses);
    expect(await lockoutOf('rita.resident')).toMatchObject({ lockouts: 1, failures: 0 });
    expect(await login('rita.resident', PASSWORD)).toBe(401);
  });

  it('returns 503 with Retry-After when too many hashes are waiting', async () => {
    const body = { user: 'tess.tech', password: PASSWORD };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => postTo(smallReplica, '/auth/token/user', body)),
    );
    const busy = answers.filter(({ status }) => status === 503);
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(2);
    expect(busy.length).toBeGreaterThan(0);
    expect(busy[0]?.type).toBe('application/problem+json');
    expect(busy[0]?.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' });
  });

  it('hashes once for wrong, unknown, passwordless, locked and legacy, so that the time reveals nothing', async () => {
    await service.database.query(
      `INSERT INTO auth.password_lockout VALUES ('gina.global', 0, 1, now() + interval '1 minute', now())
       ON CONFLICT (user_name_key) DO UPDATE SET locked_until = excluded.locked_until`,
    );
    await setHash(1003, await wrappedHash('md5', 'f'.repeat(32)));
    await setHash(1006, `aspnet-membership$sha1$c2FsdA==$${Buffer.alloc(20).toString('base64')}`);
    // Counts hashes instead of measuring time: they dominate the cost, and their count does not depend on the
    // machine's load.
    const hashes = async (user: string, password = 'wrong'): Promise<number> => {
      const before = await hashesSoFar();
      expect(await login(user, password)).toBe(401);
      return (await hashesSoFar()) - before;
    };
    expect(await hashes('ivy.internal')).toBe(1);
    expect(await hashes('nobody.2')).toBe(1);
    expect(await hashes('svc.platform')).toBe(1);
    expect(await hashes('dora.disabled')).toBe(1);
    expect(await hashes('gina.global')).toBe(1);
    expect(await hashes('gina.global', PASSWORD)).toBe(1);
    expect(await hashes('rita.resident')).toBe(1);
    expect(await hashes('lena.legacy')).toBe(1);
  });

  it('refuses an unknown user no sooner than one with a slow legacy hash', async () => {
    const salt = Buffer.alloc(16, 's');
    const header = Buffer.from([1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16]);
    const iterations = 300_000;
    header.writeUInt32BE(iterations, 5);
    const slow = Buffer.concat([header, salt, pbkdf2Sync(PASSWORD, salt, iterations, 32, 'sha256')]);
    await setHash(1006, slow.toString('base64'));
    const timeOf = async (user: string): Promise<number> => {
      const begun = performance.now();
      expect(await login(user, 'wrong')).toBe(401);
      return performance.now() - begun;
    };
    const known = [await timeOf('lena.legacy'), await timeOf('lena.legacy')];
    const unknown = [await timeOf('nobody.3'), await timeOf('nobody.3'), await timeOf('ivy.internal')];
    expect(Math.min(...unknown)).toBeGreaterThan(0.5 * Math.min(...known));
  });

  it.each<[string, () => Promise<string>]>([
    ['bcrypt', () => bcrypt(PASSWORD, 4)],
    ['ASP.NET membership', () => Promise.resolve(membershipHash(PASSWORD))],
    ['an unsalted SHA-1 wrapped at import', () => wrappedHash('sha1', unsaltedDigest('sha1', PASSWORD))],
  ])('admits with %s and replaces it by argon2id', async (_, stored) => {
    await service.database.query('DELETE FROM auth.password_lockout');
    await setHash(1006, await stored());
    expect(await login('lena.legacy', 'wrong')).toBe(401);
    expect(await login('lena.legacy', PASSWORD)).toBe(200);
    expect(await hashOf(1006)).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await login('lena.legacy', PASSWORD)).toBe(200);
  });

  it('never admits an account with a bare digest, even with the digest as password', async () => {
    const digest = unsaltedDigest('md5', PASSWORD);
    await setHash(1006, digest);
    expect(await login('lena.legacy', PASSWORD)).toBe(401);
    expect(await login('lena.legacy', digest)).toBe(401);
    expect(await hashOf(1006)).toBe(digest);
  });

  it('unites the accounts of one person, and grants InternalPartner only on request', async () => {
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

  it('finds the other account of a person by its link, whatever its user name', async () => {
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

function unsaltedDigest(digest: 'md5' | 'sha1', password: string): string {
  return createHash(digest).update(password).digest('hex');
}

/** Wraps an unsalted digest in argon2id, as it is stored. */
async function wrappedHash(name: 'md5' | 'sha1', digest: string): Promise<string> {
  return `wrapped-${name}${await argon2(digest, ARGON2ID_COST)}`;
}

/** Returns a hash in the format of `aspnet_Membership`. */
function membershipHash(password: string): string {
  const salt = Buffer.from('sixteen bytes...');
  const hash = createHash('sha256').update(salt).update(password, 'utf16le').digest('base64');
  return `aspnet-membership$sha256$${salt.toString('base64')}$${hash}`;
}
