import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Metrics } from '@platform/service-defaults';
import { ManualClock } from '@platform/time';
import type { Response } from 'supertest';
import { agentOf, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { OPENID_CLIENT } from './identity-provider-process';
import { MisbehavingProvider } from './misbehaving-provider';

const PER_ADDRESS = 3;
const IN_ALL = 8;

describe('sign-ins by single sign-on that wait for their users', () => {
  let provider: MisbehavingProvider;
  let service: AuthFixture;
  let other: NestFastifyApplication;
  const clock = new ManualClock(new Date());

  const environment = (): NodeJS.ProcessEnv => ({
    ...OPENID_CLIENT,
    OPENID_ISSUER: provider.issuer,
    OPENID_HTTP_ALLOWED: 'true',
    OPENID_WAITING_SIGN_INS: String(IN_ALL),
    OPENID_WAITING_SIGN_INS_PER_ADDRESS: String(PER_ADDRESS),
    TRUSTED_PROXIES: '127.0.0.1,::1',
  });

  beforeAll(async () => {
    provider = await MisbehavingProvider.start();
    service = await startAuthService({ environment: environment(), clock });
    other = await startReplica(service.database.url, { environment: environment(), clock });
  });
  beforeEach(async () => {
    await service.database.query(`DELETE FROM auth.openid_sign_in`);
    // A replica's count of all waiting sign-ins is at most 1 s old.
    clock.advance(1_001);
  });
  afterAll(async () => {
    await other.close();
    await service.stop();
    await provider.stop();
  });

  const initiate = async (address: string, replica = service.app, query = ''): Promise<Response> =>
    agentOf(replica).get(`/auth/token/sso/initiate${query}`).set('x-forwarded-for', address);

  const statuses = async (address: string, count: number): Promise<number[]> => {
    const found: number[] = [];
    for (let n = 0; n < count; n += 1) {
      const replica = n % 2 === 0 ? service.app : other;
      found.push((await initiate(address, replica)).status);
    }
    return found;
  };

  const waiting = async (): Promise<number> =>
    (await service.database.query(`SELECT 1 FROM auth.openid_sign_in`)).length;

  const refused = async (reason: string): Promise<number> => {
    const counter = service.app.get(Metrics).registry.getSingleMetric('auth_sign_ins_refused_total');
    const { values } = await counter!.get();
    return values.find(({ labels }) => labels['reason'] === reason)!.value;
  };

  it('are limited per address across all replicas, without affecting other addresses', async () => {
    const before = await refused('per-address');
    expect(await statuses('192.0.2.1', PER_ADDRESS + 2)).toEqual([302, 302, 302, 429, 429]);
    const { status, body, headers } = await initiate('192.0.2.1');
    expect([status, body.rejectionReason, body.wasSuccessful]).toEqual([429, 7, false]);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect(headers['set-cookie']).toBeUndefined();
    expect(await waiting()).toBe(PER_ADDRESS);
    expect((await initiate('192.0.2.2')).status).toBe(302);
    // One of the three refusals was by the other replica.
    expect(await refused('per-address')).toBe(before + 2);
  });

  it('are counted together for the addresses of an IPv6 site', async () => {
    const site = ['2001:db8:1:1::1', '2001:db8:1:2::1', '2001:db8:1:ffff::1'];
    for (const address of site) expect((await initiate(address)).status).toBe(302);
    expect((await initiate('2001:db8:1:3::1')).status).toBe(429);
    expect((await initiate('2001:db8:2:1::1')).status).toBe(302);
  });

  it('free their slots when they end or expire', async () => {
    await statuses('192.0.2.3', PER_ADDRESS);
    expect((await initiate('192.0.2.3')).status).toBe(429);
    await service.database.query(`UPDATE auth.openid_sign_in SET expires_at = now() - interval '1 second'`);
    clock.advance(1_001);
    expect((await initiate('192.0.2.3')).status).toBe(302);
  });

  it('are not counted if a clock that was ahead dated them', async () => {
    await statuses('192.0.2.6', PER_ADDRESS);
    for (let n = PER_ADDRESS; n < IN_ALL; n += 1) await initiate(`198.51.100.${String(n)}`);
    await service.database.query(
      `UPDATE auth.openid_sign_in SET expires_at = expires_at + interval '1 hour'`,
    );
    clock.advance(1_001);
    expect((await initiate('192.0.2.6')).status).toBe(302);
  });

  it('are limited in all: further ones get 503 and are counted by a metric', async () => {
    const before = await refused('in-all');
    for (let n = 0; n < IN_ALL; n += 1) expect((await initiate(`198.51.100.${String(n)}`)).status).toBe(302);
    const { status, headers, type } = await initiate('198.51.100.99');
    expect([status, type]).toEqual([503, 'application/problem+json']);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect(await waiting()).toBe(IN_ALL);
    expect(await refused('in-all')).toBe(before + 1);
    // The other replica notices within 1 s.
    clock.advance(1_001);
    expect((await initiate('198.51.100.98', other)).status).toBe(503);
    expect(await waiting()).toBe(IN_ALL);
  });

  it('stay near the limit under concurrent requests', async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => initiate('192.0.2.4')));
    // As many may exceed the limit as there are connections to the database.
    expect(await waiting()).toBeLessThanOrEqual(PER_ADDRESS + 5);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([302, 429]));
  });

  it('are counted even if a replica of release 1.0.0 began them', async () => {
    await service.database.query(
      `INSERT INTO auth.openid_sign_in (state_hash, browser_hash, sealed_secrets, application_key, expires_at)
       SELECT decode(lpad(n::text, 64, '0'), 'hex'), 'x', 'x', NULL, now() + interval '10 minutes'
       FROM generate_series(1, $1::int) AS n`,
      [IN_ALL],
    );
    clock.advance(1_001);
    expect((await initiate('192.0.2.5')).status).toBe(503);
  });
});
