import { eventually } from '@platform/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { newTrace, traceparent } from './audit-fixture';
import { postTo, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { PurgeExpiredJob } from '../src/purges/purge-expired.job';

const REFUSALS = 150;

describe('a flood of refusals from one address, on two replicas', () => {
  let service: AuthFixture;
  let second: NestFastifyApplication;
  beforeAll(async () => {
    const environment = { TRUSTED_PROXIES: '127.0.0.1,::1' };
    service = await startAuthService({ environment });
    second = await startReplica(service.database.url, { environment });
  });
  afterAll(async () => {
    await second.close();
    await service.stop();
  });

  async function refuse(count: number, address: (n: number) => string): Promise<void> {
    const replicas = [service.app, second];
    for (let n = 0; n < count; n += 1) {
      const sent = postTo(replicas[n % 2]!, '/auth/token/refresh', { refreshToken: `x-${String(n)}` });
      const trace = traceparent(newTrace());
      const { status } = await sent.set({ traceparent: trace, 'X-Forwarded-For': address(n) });
      expect(status).toBe(401);
    }
  }
  const counted = async (network: string): Promise<number> => {
    const [row] = await service.database.query<{ refusals: number }>(
      'SELECT coalesce(sum(refusals), 0)::int AS refusals FROM auth.refusal_count WHERE network = $1',
      [network],
    );
    return row!.refusals;
  };
  const rowsOf = (where: string): Promise<{ minute: Date; single: number; counts: number[] }[]> =>
    service.database.query(
      `SELECT date_trunc('minute', occurred_at - CASE WHEN refusals IS NULL THEN '0' ELSE interval '1 minute' END) AS minute,
         count(*) FILTER (WHERE refusals IS NULL)::int AS single,
         coalesce(array_agg(refusals) FILTER (WHERE refusals IS NOT NULL), '{}') AS counts
       FROM auth.token_audit WHERE ${where} GROUP BY 1 ORDER BY 1`,
    );
  /** Shifts the counts two minutes into the past. */
  const age = (): Promise<unknown> =>
    service.database.query(
      `WITH aged AS (UPDATE auth.refusal_count SET minute = minute - interval '2 minutes')
       SELECT 1`,
    );

  it.each([
    ['one IPv4 address', '198.51.100.7', () => '198.51.100.7', `address = '198.51.100.7'`],
    [
      'one IPv6 site',
      '2001:db8:0::/48',
      (n: number) => `2001:db8:0:${(n % 7).toString(16)}::${(n + 1).toString(16)}`,
      `address << '2001:db8::/48'`,
    ],
  ])(
    'of %s leaves at most 60 rows a minute, and one row that counts the rest',
    async (_, network, address, where) => {
      await refuse(REFUSALS, address);
      await eventually(async () => expect(await counted(network)).toBe(REFUSALS));
      // The requests may span two minutes.
      const before = await rowsOf(where);
      for (const { single, counts } of before) {
        expect(single).toBeLessThanOrEqual(60);
        expect(counts).toEqual([]);
      }
      expect(before.reduce((sum, { single }) => sum + single, 0)).toBeLessThanOrEqual(60 * before.length);
      await age();
      await Promise.all([service.app, second].map((replica) => replica.get(PurgeExpiredJob).run()));
      const [summary] = await service.database.query<{ rows: number; refusals: number; flow: string }>(
        `SELECT count(*)::int AS rows, sum(refusals)::int AS refusals, min(flow) AS flow
       FROM auth.token_audit WHERE ${where} AND refusals IS NOT NULL`,
      );
      const single = before.reduce((sum, each) => sum + each.single, 0);
      expect(summary!.rows).toBeLessThanOrEqual(before.length);
      expect((summary!.refusals ?? 0) + single).toBe(REFUSALS);
      expect(summary!.flow).toBe('refresh');
      expect(await counted(network)).toBe(0);
    },
  );

  it('of many addresses leaves a row for each', async () => {
    await refuse(80, (n) => `203.0.113.${String(n)}`);
    await eventually(async () => {
      const rows = await service.database.query(
        `SELECT 1 FROM auth.token_audit WHERE address << '203.0.113.0/24'`,
      );
      expect(rows).toHaveLength(80);
    });
  });
});
