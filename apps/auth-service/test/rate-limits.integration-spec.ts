import { signTrustRequest } from '@platform/auth-client';
import { Metrics } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import { ManualClock } from '@platform/time';
import type { Test } from 'supertest';
import { DataSource } from 'typeorm';
import type { AuthConfig } from '../src/config';
import { TokenRateExceeded } from '../src/rate-limits/rate-limit';
import { RateLimitsRepository } from '../src/rate-limits/rate-limits.repository';
import { RateLimitsService } from '../src/rate-limits/rate-limits.service';
import { administrator } from './admin-fixture';
import { BACKEND, PASSWORD, REPORTS, agentOf, expectOutcome, postTo, startReplica } from './auth-fixture';
import { ReplicaPair } from './replica-processes';

// Low limits per minute: a bucket refills by one request in 10 s or 20 s, longer than a burst of requests
// takes even on a slow machine.
const PER_ADDRESS = 6;
const PER_APPLICATION = 3;
const CARL = { persona: 2, userName: 'carl.customer' };
const ENVIRONMENT = {
  TRUSTED_PROXIES: '127.0.0.1,::1',
  TOKEN_RATE_LIMIT_PER_ADDRESS: String(PER_ADDRESS),
  TOKEN_RATE_LIMIT_PER_APPLICATION: String(PER_APPLICATION),
};

describe('rate limits of the token endpoints', () => {
  let pair: ReplicaPair;
  beforeAll(async () => {
    pair = await ReplicaPair.start(ENVIRONMENT);
  }, 90_000);
  afterAll(() => pair.stop());
  beforeEach(() => pair.database.query('DELETE FROM auth.rate_limit'));

  const trusted = (overrides: object = {}): object => ({ ...BACKEND, ...CARL, ...overrides });

  /** Sends a request to the first process if `turn` is even, otherwise to the second. */
  const ask = (turn: number, address: string, body: object, path = 'trust-simple'): Test =>
    postTo(pair.urls[turn % 2]!, `/auth/token/${path}`, body).set('X-Forwarded-For', address);

  async function statuses(count: number, send: (turn: number) => Test): Promise<Map<number, number>> {
    const answers = await Promise.all(Array.from({ length: count }, (_, turn) => send(turn)));
    const counts = new Map<number, number>();
    for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
    return counts;
  }

  it('admit no more requests of an address than configured, across both processes and concurrently', async () => {
    const wrong = trusted({ sharedSecret: 'wrong' });
    const counts = await statuses(40, (turn) => ask(turn, '203.0.113.1', wrong));
    expect(counts).toEqual(
      new Map([
        [401, PER_ADDRESS],
        [429, 40 - PER_ADDRESS],
      ]),
    );
    // Another address is not affected.
    expect((await ask(0, '203.0.113.2', wrong)).status).toBe(401);
  });

  it('ignore X-Forwarded-For from untrusted addresses, so that invented addresses do not help', async () => {
    const environment = { ...ENVIRONMENT, TRUSTED_PROXIES: '192.0.2.7, fd00::/8' };
    const exposed = await startReplica(pair.database.url, { environment });
    const wrong = trusted({ sharedSecret: 'wrong' });
    const counts = await statuses(20, (turn) =>
      postTo(exposed, '/auth/token/trust-simple', wrong).set('X-Forwarded-For', `198.18.0.${String(turn)}`),
    );
    await exposed.close();
    expect(counts).toEqual(
      new Map([
        [401, PER_ADDRESS],
        [429, 20 - PER_ADDRESS],
      ]),
    );
    // The addresses in X-Forwarded-For are not limited.
    expect((await ask(0, '198.18.0.1', wrong)).status).toBe(401);
  });

  it('count a network of IPv6 addresses as one', async () => {
    const wrong = trusted({ sharedSecret: 'wrong' });
    const counts = await statuses(20, (turn) => ask(turn, `2001:db8:1:1::${String(turn + 1)}`, wrong));
    expect(counts.get(429)).toBe(20 - PER_ADDRESS);
    expect((await ask(0, '2001:db8:1:2::1', wrong)).status).toBe(401);
  });

  it('count the networks of one site together as well, at sixteen times the limit', async () => {
    const config = { TOKEN_RATE_LIMIT_PER_ADDRESS: PER_ADDRESS } as AuthConfig;
    const refusals = new Metrics().counter('refusals', 'Refusals', ['by']);
    const clock = new ManualClock('2026-01-01T00:00:00Z');
    const admitted = new Map<string, number>();
    const replica = await startReplica(pair.database.url);
    // PostgreSQL's now() is constant within a transaction, so no bucket refills during the test.
    await replica.get(DataSource).transaction(async (manager) => {
      const repository = new RateLimitsRepository(manager as unknown as DataSource);
      const limits = new RateLimitsService(repository, config, clock, refusals);
      const admit = async (site: string, network: number): Promise<void> => {
        try {
          await limits.admitAddress(`${site}:${network.toString(16)}::1`);
          admitted.set(site, (admitted.get(site) ?? 0) + 1);
        } catch (error) {
          expect(error).toBeInstanceOf(TokenRateExceeded);
        }
      };
      for (let network = 0; network < 16 * PER_ADDRESS + 10; network += 1) await admit('2001:db8:2', network);
      for (let turn = 0; turn < 2 * PER_ADDRESS; turn += 1) await admit('2001:db8:3', 7);
    });
    await replica.close();
    expect(Object.fromEntries(admitted)).toEqual({
      '2001:db8:2': 16 * PER_ADDRESS,
      '2001:db8:3': PER_ADDRESS,
    });
  });

  it('refuse every network of a site that has exhausted its limit, and no other', async () => {
    const wrong = trusted({ sharedSecret: 'wrong' });
    const statusOf = async (address: string): Promise<number> => (await ask(0, address, wrong)).status;
    expect(await statusOf('2001:db8:4:1::1')).toBe(401);
    // Exhausted for longer than a minute, so that the bucket does not refill during the test.
    await pair.database.query(
      `UPDATE auth.rate_limit SET free_at = now() + interval '110 seconds' WHERE bucket = 'address:2001:db8:4::/48'`,
    );
    expect(await statuses(10, (turn) => ask(turn, `2001:db8:4:${String(turn + 2)}::1`, wrong))).toEqual(
      new Map([[429, 10]]),
    );
    expect(await statusOf('2001:db8:5:1::1')).toBe(401);
  });

  it('ignore counts written while a clock was ahead', async () => {
    const wrong = trusted({ sharedSecret: 'wrong' });
    expect((await ask(0, '203.0.113.8', trusted())).status).toBe(200);
    await pair.database.query(`UPDATE auth.rate_limit SET free_at = free_at + interval '1 hour'`);
    expect((await ask(1, '203.0.113.8', trusted())).status).toBe(200);
    const counts = await statuses(PER_ADDRESS, (turn) => ask(turn, '203.0.113.8', wrong));
    expect(counts).toEqual(
      new Map([
        [401, PER_ADDRESS - 1],
        [429, 1],
      ]),
    );
  });

  it('distinguish addresses behind one NAT64 gateway, and count 6to4 networks as their IPv4 address', async () => {
    const wrong = trusted({ sharedSecret: 'wrong' });
    const behind = await statuses(2 * PER_ADDRESS, (turn) =>
      ask(turn, `64:ff9b::198.51.100.${String(turn)}`, wrong),
    );
    expect(behind.get(429)).toBeUndefined();
    const owned = await statuses(20, (turn) => ask(turn, `2002:cb00:7109:${turn.toString(16)}::1`, wrong));
    expect(owned.get(429)).toBe(20 - PER_ADDRESS);
  });

  it('return a TokenResponse with reason 7 and Retry-After, and admit the caller after that time', async () => {
    await statuses(PER_ADDRESS, (turn) => ask(turn, '203.0.113.3', trusted({ sharedSecret: 'wrong' })));
    const sent = ask(0, '203.0.113.3', trusted());
    await expectOutcome(sent, { status: 429, reason: 7 });
    const { headers, body } = await sent;
    const retryAfter = Number(headers['retry-after']);
    expect(retryAfter).toBeGreaterThanOrEqual(1);
    expect(retryAfter).toBeLessThanOrEqual(60 / PER_ADDRESS);
    expect(body.rejectionDetails).toMatch(/^Too many token requests; try again in \d+ s\.$/);
    // Simulates the wait. The other process has not cached the refusal.
    await pair.database.query(`UPDATE auth.rate_limit SET free_at = free_at - $1 * interval '1 second'`, [
      retryAfter,
    ]);
    expect((await ask(1, '203.0.113.3', trusted())).status).toBe(200);
    expect((await ask(1, '203.0.113.3', trusted())).status).toBe(429);
  });

  it('limit every flow before any other work', async () => {
    await statuses(PER_ADDRESS, (turn) => ask(turn, '203.0.113.4', { user: 'x' }, 'user'));
    // A replica in this process, because its responses are checked against the API document.
    const third = await startReplica(pair.database.url, { environment: ENVIRONMENT });
    const requests: [string, object][] = [
      ['user', { user: 'carl.customer', password: PASSWORD }],
      ['refresh', { refreshToken: 'x' }],
      ['trust', {}],
      ['trust-simple', {}],
      ['code', {}],
      ['bearer', {}],
      ['trustedToken', {}],
    ];
    const sent = [
      ...requests.map(([path, body]) => postTo(third, `/auth/token/${path}`, body)),
      ...['openId', 'user/AzureADLogOn'].map((path) =>
        postTo(third, `/auth/token/${path}`).type('form').send(''),
      ),
      ...['sso/initiate', 'user/winauth'].map((path) => agentOf(third).get(`/auth/token/${path}`)),
    ];
    for (const request of sent)
      await expectOutcome(request.set('X-Forwarded-For', '203.0.113.4'), { status: 429, reason: 7 });
    await third.close();
  });

  it('count proven requests of an application over all addresses and processes, but no unproven ones', async () => {
    const address = (turn: number): string => `198.51.100.${String(turn)}`;
    const wrong = trusted({ sharedSecret: 'wrong' });
    const pretenders = await statuses(20, (turn) => ask(turn, address(turn), wrong));
    expect(pretenders).toEqual(new Map([[401, 20]]));
    const counts = await statuses(20, (turn) => ask(turn, address(turn), trusted()));
    expect(counts).toEqual(
      new Map([
        [200, PER_APPLICATION],
        [429, 20 - PER_APPLICATION],
      ]),
    );
    expect((await ask(0, address(50), trusted(REPORTS))).status).toBe(200);
  });

  it('do not count requests of users and tokens that only name an application', async () => {
    const address = (turn: number): string => `192.0.2.${String(turn + 1)}`;
    const applicationKey = 'named-by-many';
    const create = `applications create ${applicationKey} --personas all --flows all --allow-refresh`;
    const { sharedSecret } = await administrator(pair.database.ownerUrl).json(create);
    const named = (turn: number): Test =>
      ask(turn, address(turn), { user: 'carl.customer', password: PASSWORD }, 'user').set(
        'X-Application-Key',
        applicationKey,
      );
    expect(await statuses(2 * PER_APPLICATION, named)).toEqual(new Map([[200, 2 * PER_APPLICATION]]));
    let { accessToken, refreshToken } = (await named(20)).body as Record<
      'accessToken' | 'refreshToken',
      string
    >;
    for (let turn = 30; turn < 30 + 2 * PER_APPLICATION; turn += 1) {
      const exchanged = await ask(turn, address(turn), {}, 'bearer').set(
        'Authorization',
        `Bearer ${accessToken}`,
      );
      ({ accessToken } = exchanged.body as { accessToken: string });
      const refreshed = await ask(turn, address(turn), { refreshToken }, 'refresh');
      ({ refreshToken } = refreshed.body as { refreshToken: string });
      expect([exchanged.status, refreshed.status]).toEqual([200, 200]);
    }
    expect(
      await pair.database.query(`SELECT * FROM auth.rate_limit WHERE bucket LIKE 'application:%'`),
    ).toEqual([]);
    const own = await statuses(2 * PER_APPLICATION, (turn) =>
      ask(turn, address(60), trusted({ applicationKey, sharedSecret })),
    );
    expect(own.get(200)).toBe(PER_APPLICATION);
  });

  it('keep a refused signed request valid, and do not count replays', async () => {
    const admin = administrator(pair.database.ownerUrl);
    const { sharedSecret } = await admin.json(
      'applications create signing --personas Customer --flows trust',
    );
    const signed = (age: number): object => {
      const requestTimestampUtc = new Date(Date.now() - age).toISOString();
      const unsigned = { requestTimestampUtc, applicationKey: 'signing', ...CARL };
      return { ...unsigned, authenticationCode: signTrustRequest(unsigned, sharedSecret) };
    };
    let addresses = 100;
    const send = (turn: 0 | 1, body: object): Test =>
      ask(turn, `198.51.100.${String((addresses += 1))}`, body, 'trust');
    const [ok, replayed, limited] = [
      { status: 200, reason: 0 },
      { status: 401, reason: 1 },
      { status: 429, reason: 7 },
    ];
    const first = signed(0);
    await expectOutcome(send(0, first), ok);
    for (let turn = 0; turn < 2 * PER_APPLICATION; turn += 1) await expectOutcome(send(0, first), replayed);
    for (let turn = 1; turn < PER_APPLICATION; turn += 1) await expectOutcome(send(1, signed(turn)), ok);
    const refused = signed(50);
    for (let turn = 0; turn < 3; turn += 1) await expectOutcome(send(0, refused), limited);
    // Simulates the wait. The first process would still cache its refusal; the second has refused nothing.
    await pair.database.query(`UPDATE auth.rate_limit SET free_at = now() - interval '2 minutes'`);
    await expectOutcome(send(1, refused), ok);
    await expectOutcome(send(1, refused), replayed);
  });

  it('are recorded in the audit trail, but not once for each request of a flood', async () => {
    await pair.database.query('DELETE FROM auth.token_audit');
    const wrong = trusted({ sharedSecret: 'wrong' });
    await statuses(PER_ADDRESS, (turn) => ask(turn, '203.0.113.5', wrong));
    for (let turn = 0; turn < 20; turn += 1) expect((await ask(turn, '203.0.113.5', wrong)).status).toBe(429);
    const rows = await eventually(async () => {
      const found = await pair.database.query<{ reason: number; detail: string }>(
        `SELECT reason, detail FROM auth.token_audit WHERE status = 429`,
      );
      expect(found.length).toBeGreaterThan(0);
      return found;
    });
    expect(rows.length).toBeLessThanOrEqual(4);
    expect(rows[0]).toEqual({ reason: 7, detail: 'rate limit by address' });
  });

  it('are off unless configured', async () => {
    const unlimited = await startReplica(pair.database.url);
    const sent = (): Test => postTo(unlimited, '/auth/token/trust-simple', trusted());
    expect(await statuses(30, sent)).toEqual(new Map([[200, 30]]));
    expect(await pair.database.query('SELECT * FROM auth.rate_limit')).toEqual([]);
    await unlimited.close();
  });
});
