import { eventually, testSize } from '@platform/testing';
import { Client } from 'pg';
import { ConfirmRevocationsJob } from '../src/revocations/confirm-revocations.job';
import { startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

/** Number of revocations confirmed while the transaction is open. */
const REVOCATIONS = testSize('TEST_HELD_REVOCATIONS', { quick: 10_000, full: 100_000 });

// A report or a dump may keep a transaction open for hours. Until it ends, each confirmed revocation leaves a
// dead entry in the index of unconfirmed ones.
describe('revocations during a long-running transaction', () => {
  let service: AuthFixture;
  let old: Client;
  beforeAll(async () => {
    service = await startAuthService();
    old = new Client({ connectionString: service.database.ownerUrl });
    await old.connect();
    await old.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await old.query('SELECT count(*) FROM auth.revocations');
  });
  afterAll(async () => {
    await old.end();
    await service.stop();
  });

  const unconfirmed = async (): Promise<number> => {
    const sql = 'SELECT count(*)::int AS count FROM auth.revocations WHERE NOT confirmed';
    const [row] = await service.database.query<{ count: number }>(sql);
    return row!.count;
  };

  it.each(['jti', 'sid'])('of a %s that committed late get a new date at once', async (domain) => {
    const { database, app } = service;
    await database.query(
      `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject, confirmed)
       SELECT $1, gen_random_uuid()::text, now() - n * interval '1 millisecond', 's', false FROM generate_series(1, $2::integer) AS n`,
      [domain, REVOCATIONS],
    );
    await database.query('UPDATE auth.revocations SET confirmed = true WHERE NOT confirmed');
    await database.query('VACUUM auth.revocation, auth.session_revocation');
    const [late] = await database.query<{ identifier: string }>(
      `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject, confirmed)
       VALUES ($1, gen_random_uuid()::text, now() - interval '62 seconds', 's', false) RETURNING identifier`,
      [domain],
    );
    const begun = performance.now();
    await app.get(ConfirmRevocationsJob).run();
    const tookMs = performance.now() - begun;
    if (REVOCATIONS >= 100_000)
      process.stdout.write(`beside ${String(REVOCATIONS)} a run took ${tookMs.toFixed(0)} ms\n`);
    const [dated] = await database.query<{ ageSeconds: number }>(
      `SELECT extract(epoch FROM now() - revocation_date)::float8 AS "ageSeconds" FROM auth.revocations WHERE identifier = $1`,
      [late!.identifier],
    );
    expect(dated!.ageSeconds).toBeLessThan(10);
    await eventually(async () => expect(await unconfirmed()).toBe(0));
  });
});
