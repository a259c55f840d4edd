import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Metrics } from '@platform/service-defaults';
import { TcpProxy, permitFaults } from '@platform/testing';
import { Client } from 'pg';
import { PurgeExpiredJob } from '../src/purges/purge-expired.job';
import { auditRowsOf, audited, newTrace, traceparent, trusted } from './audit-fixture';
import { bearerOf, postTo, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('the audit trail cannot be avoided or changed', () => {
  let service: AuthFixture;
  let limited: NestFastifyApplication;
  beforeAll(async () => {
    service = await startAuthService();
    limited = await startReplica(service.database.url, {
      environment: { TOKEN_RATE_LIMIT_PER_ADDRESS: '10000' },
    });
  });
  afterAll(async () => {
    await limited.close();
    await service.stop();
  });

  it('issues no token and opens no session if it cannot be written', async () => {
    const families = async (): Promise<unknown> =>
      service.database.query('SELECT count(*) FROM auth.refresh_family');
    const before = await families();
    const { body } = await service.post('/auth/token/trust-simple', trusted());
    const during = await families();
    expect(during).not.toEqual(before);
    permitFaults();
    await service.database.query('ALTER TABLE auth.token_audit RENAME TO token_audit_gone');
    try {
      const requests = [
        service.post('/auth/token/trust-simple', trusted()),
        service.post('/auth/token/refresh', { refreshToken: body.refreshToken as string }),
        bearerOf(service.post('/auth/token/bearer'), body.accessToken as string),
      ];
      for (const sent of requests) {
        const answer = await sent;
        expect(answer.status).toBe(500);
        expect(answer.text).not.toContain('eyJ');
      }
      // A refusal is sent even without its audit row, because it reveals nothing.
      expect((await service.post('/auth/token/trust-simple', trusted({ sharedSecret: 'x' }))).status).toBe(
        401,
      );
    } finally {
      await service.database.query('ALTER TABLE auth.token_audit_gone RENAME TO token_audit');
    }
    expect(await families()).toEqual(during);
    // The refresh token was not used up either.
    expect(
      (await service.post('/auth/token/refresh', { refreshToken: body.refreshToken as string })).status,
    ).toBe(200);
    const metric = service.app.get(Metrics).registry.getSingleMetric('auth_refusal_audit_rows_total');
    const { values } = await metric!.get();
    expect(values.find(({ labels }) => labels['outcome'] === 'lost')?.value).toBeGreaterThan(0);
  });

  it('keeps refusals through an outage of the database, and dates them to the time of the request', async () => {
    const proxy = await TcpProxy.start(service.database.url);
    const replica = await startReplica(proxy.url);
    const send = async (body: object): Promise<[number, string]> => {
      const traceId = newTrace();
      const sent = postTo(replica, '/auth/token/trust-simple', body).set('traceparent', traceparent(traceId));
      return [(await sent).status, traceId];
    };
    await proxy.refuse();
    const [invalid, invalidTrace] = await send({});
    const [outage, outageTrace] = await send(trusted());
    expect([invalid, outage]).toEqual([400, 503]);
    const restoredAtMs = performance.now();
    await proxy.restore();
    expect(await auditRowsOf(service.database, invalidTrace)).toMatchObject([{ status: 400, reason: 7 }]);
    expect(await auditRowsOf(service.database, outageTrace)).toMatchObject([{ status: 503, reason: null }]);
    const [row] = await service.database.query<{ ageMs: number }>(
      `SELECT extract(epoch FROM now() - occurred_at)::float8 * 1000 AS "ageMs" FROM auth.token_audit
       WHERE trace_id = $1`,
      [outageTrace],
    );
    expect(row?.ageMs).toBeGreaterThanOrEqual(performance.now() - restoredAtMs - 100);
    await replica.close();
    await proxy.stop();
  });

  it('is written by a role that may only insert', async () => {
    const success = await audited(limited, service.database, '/auth/token/trust-simple', trusted());
    expect(success.row).toMatchObject({ status: 200, reason: 0 });
    const { refreshToken, accessToken } = success.answer.body;
    const refreshed = await audited(limited, service.database, '/auth/token/refresh', { refreshToken });
    expect(refreshed.row).toMatchObject({ status: 200 });
    const refused = await audited(
      limited,
      service.database,
      '/auth/token/trust-simple',
      trusted({ userName: 'x' }),
    );
    expect(refused.row).toMatchObject({ status: 422 });
    const revocations = async (): Promise<unknown> =>
      service.database.query('SELECT count(*) FROM auth.revocation_audit');
    const before = await revocations();
    await service.put('/auth/revocations/jti/role-test', accessToken).expect(200);
    expect(await revocations()).not.toEqual(before);

    const client = new Client({ connectionString: service.database.url });
    await client.connect();
    const noInsert = client.query(`INSERT INTO auth.administration_audit (object, name, operation, change)
      VALUES ('application', 'x', 'insert', '{}')`);
    await expect(noInsert).rejects.toThrow('permission denied');
    for (const table of ['token_audit', 'revocation_audit', 'administration_audit']) {
      for (const statement of [
        `SELECT * FROM auth.${table}`,
        `UPDATE auth.${table} SET address = NULL`,
        `DELETE FROM auth.${table}`,
        `TRUNCATE auth.${table}`,
        `ALTER TABLE auth.${table} DISABLE TRIGGER ALL`,
      ]) {
        await expect(client.query(statement)).rejects.toThrow(/permission denied|must be owner/);
      }
    }
    await client.end();
  });

  it('is kept for as long as configured, and never for less than 30 days', async () => {
    await service.database.query(
      `INSERT INTO auth.token_audit (occurred_at, flow, status, detail)
       OVERRIDING USER VALUE SELECT now() - days * interval '1 day', 'refresh', 401, 'aged'
       FROM unnest(ARRAY[500, 401, 399, 29]) AS days`,
    );
    // The purge expects the oldest rows to have the lowest ids. The aged rows have the highest ids, so the
    // newer rows are deleted first.
    await service.database.query(`DELETE FROM auth.token_audit WHERE detail IS DISTINCT FROM 'aged'`);
    const kept = async (): Promise<number[]> => {
      const rows = await service.database.query<{ days: number }>(
        `SELECT round(extract(epoch FROM now() - occurred_at) / 86400)::int AS days FROM auth.token_audit
         WHERE detail = 'aged' ORDER BY 1`,
      );
      return rows.map(({ days }) => days);
    };
    await limited.get(PurgeExpiredJob).run();
    expect(await kept()).toEqual([29, 399]);
    const client = new Client({ connectionString: service.database.url });
    await client.connect();
    await client.query('SELECT auth.purge_audit(0)');
    await expect(client.query('SELECT auth.purge_audit(NULL)')).rejects.toThrow('a retention is required');
    await client.end();
    expect(await kept()).toEqual([29]);
  });

  it('writes all waiting rows before the process ends', async () => {
    const replica = await startReplica(service.database.url);
    const names = Array.from({ length: 20 }, () => `leaver-${newTrace()}`);
    await Promise.all(
      names.map((userName) => postTo(replica, '/auth/token/trust-simple', trusted({ userName }))),
    );
    await replica.close();
    const [row] = await service.database.query<{ count: string }>(
      'SELECT count(*) FROM auth.token_audit WHERE user_name = ANY($1)',
      [names],
    );
    expect(row?.count).toBe('20');
  });
});
