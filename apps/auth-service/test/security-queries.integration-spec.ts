import { createTestDatabase, securityQueries } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { migrateWithIdentities } from './auth-fixture';

const QUERIES = securityQueries('auth').concat(securityQueries('person_directory'));

describe('the queries of SECURITY.md', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
  });
  afterAll(() => database.drop());

  it.each(QUERIES)('run: %s', async (sql) => {
    await expect(database.query(sql)).resolves.toBeInstanceOf(Array);
  });

  it('find tokens that were issued to applications without a live secret, and no others', async () => {
    const sql = QUERIES.find((query) => query.includes('WITH secret AS'))!;
    await addApplication('live', { from: '2026-01-01' });
    await addApplication('expired', { from: '2026-01-01', until: '2026-03-01' });
    await addApplication('empty', null);
    await addApplication('deleted', { from: '2026-01-01' });
    await database.query(`DELETE FROM auth.application_secret WHERE application_key = 'deleted'`);
    await database.query(
      `UPDATE auth.administration_audit SET occurred_at = '2026-03-01' WHERE name = 'deleted' AND operation = 'delete'`,
    );
    for (const key of ['live', 'expired', 'empty', 'deleted'])
      for (const at of ['2026-02-01', '2026-04-01']) await addToken(key, at);
    const found = await database.query<{ application_key: string; occurred_at: Date }>(sql);
    const rows = found.map((row) => `${row.application_key} ${row.occurred_at.toISOString().slice(0, 7)}`);
    expect(rows.sort()).toEqual(['deleted 2026-04', 'empty 2026-02', 'empty 2026-04', 'expired 2026-04']);
  });

  it('find renewals that a late revocation missed', async () => {
    const sql = QUERIES.find((query) => query.includes('renewed_at'))!;
    await database.query(
      `INSERT INTO auth.revocation_audit (occurred_at, domain, identifier, because)
       VALUES ('2026-05-01T10:00:00Z', 'svc-personid', '1001', 'request')`,
    );
    await addToken('demo-backend', '2026-05-01T10:00:03Z', 'refresh');
    await addToken('demo-backend', '2026-05-01T10:01:00Z', 'refresh');
    expect(await database.query(sql)).toHaveLength(1);
  });

  it('find sign-ins that may have been in progress when their subject or application was revoked', async () => {
    const sql = QUERIES.find((query) => query.includes('signed_in_at'))!;
    await database.query(
      `INSERT INTO auth.revocation_audit (occurred_at, domain, identifier, because)
       VALUES ('2026-06-01T10:00:00Z', 'svc-personid', '1001', 'request'), ('2026-06-02T10:00:00Z', 'client_id', 'demo-backend', 'request')`,
    );
    for (const at of ['2026-06-01T10:00:05Z', '2026-06-01T10:11:00Z', '2026-06-02T10:09:00Z'])
      await addToken('demo-backend', at, 'password');
    expect(await database.query(sql)).toHaveLength(2);
  });

  it('find facilities that a person holds for only one of several personas', async () => {
    const sql = QUERIES.find((query) => query.includes('FROM person_directory.'))!;
    await database.query('UPDATE person_directory.person SET personas = 10 WHERE person_id = 1003');
    await database.query(
      `INSERT INTO person_directory.person_facility (person_id, facility_id, persona)
       VALUES (1003, 777, 2), (1003, 778, 10), (1002, 777, 16)`,
    );
    const found = await database.query<{ person_id: unknown; facility_id: unknown }>(sql);
    expect(found.map((row) => [Number(row.person_id), Number(row.facility_id)])).toEqual([[1003, 777]]);
  });

  async function addApplication(key: string, secret: { from: string; until?: string } | null): Promise<void> {
    await database.query(
      `INSERT INTO auth.application (application_key, allowed_personas, allow_refresh, allowed_flows)
       VALUES ($1, 31, true, '{trust}')`,
      [key],
    );
    if (secret === null) return;
    await database.query(
      `INSERT INTO auth.application_secret (application_key, version, ciphertext, created_at, expires_at)
       VALUES ($1, 1, '', $2, $3)`,
      [key, secret.from, secret.until ?? null],
    );
  }

  async function addToken(applicationKey: string, at: string, flow = 'trust'): Promise<void> {
    await database.query(
      `INSERT INTO auth.token_audit (occurred_at, flow, status, reason, application_key, subject, access_token_id)
       VALUES ($1, $2, 200, 0, $3, 'personid:1001', gen_random_uuid())`,
      [at, flow, applicationKey],
    );
  }
});
