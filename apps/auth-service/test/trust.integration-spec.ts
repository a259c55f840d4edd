import { TokenProvider, signTrustRequest } from '@platform/auth-client';
import type { UnsignedTrustRequest } from '@platform/auth-client';
import { Metrics } from '@platform/service-defaults';
import { ManualClock, SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import { applicationSecretPurpose } from '../src/applications/application';
import { TokenAuditRepository } from '../src/audit/token-audit.repository';
import { AUTH_CONFIG } from '../src/config';
import type { AuthConfig } from '../src/config';
import { PurgeExpiredJob } from '../src/purges/purge-expired.job';
import {
  BACKEND,
  PLATFORM_SECRET,
  SECRET_BOX,
  claimsOf,
  postTo,
  startAuthService,
  startReplica,
} from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('trust', () => {
  const clock = new ManualClock(SYSTEM_CLOCK.now());
  let service: AuthFixture;
  let used = 0;
  beforeAll(async () => {
    service = await startAuthService({ clock });
  });
  afterAll(() => service.stop());

  function request(overrides: Partial<UnsignedTrustRequest> = {}, offsetMs = 0): UnsignedTrustRequest {
    // The timestamps differ by a millisecond, because each signature is valid only once.
    used += 1;
    return {
      requestTimestampUtc: new Date(
        clock.now().getTime() + offsetMs - (offsetMs === 0 ? used : 0),
      ).toISOString(),
      applicationKey: BACKEND.applicationKey,
      persona: 2,
      userName: 'carl.customer',
      ...overrides,
    };
  }

  /**
   * Purges with the system clock, because a purge is skipped while the clocks of the job and the database
   * differ.
   */
  const purge = (): Promise<void> => {
    const { app } = service;
    return new PurgeExpiredJob(
      ...([app.get(DataSource), app.get(TokenAuditRepository)] as const),
      ...([app.get<AuthConfig>(AUTH_CONFIG), SYSTEM_CLOCK, new Metrics()] as const),
    ).run();
  };

  const signed = (unsigned: UnsignedTrustRequest, secret = BACKEND.sharedSecret): object => ({
    ...unsigned,
    authenticationCode: signTrustRequest(unsigned, secret),
  });

  async function outcomeOf(body: object): Promise<[number, number]> {
    const { status, body: answer } = await service.post('/auth/token/trust', body);
    return [status, answer.rejectionReason as number];
  }

  it('issues a token for the user that a signed request names', async () => {
    const { status, body } = await service.post('/auth/token/trust', signed(request()));
    expect(status).toBe(200);
    expect(claimsOf(body.accessToken)).toMatchObject({
      sub: 'personid:1001',
      personas: 2,
      client_id: 'demo-backend',
    });
  });

  it('issues a token for a technician named only by provider and name', async () => {
    const technician = { persona: 4, userName: 'tech.4711', serviceProviderID: 815, name: 'Jörg Müller' };
    const { body } = await service.post('/auth/token/trust', signed(request(technician)));
    expect(claimsOf(body.accessToken)).toMatchObject({ sub: 'technician:815:Jörg Müller', personas: 4 });
  });

  it.each<[string, object]>([
    ['persona', { persona: 1 }],
    ['userName', { userName: 'ivy.internal' }],
    ['personID', { personID: 1001 }],
    ['userAccountID', { userAccountID: 0 }],
    ['name', { name: 'x' }],
    ['serviceProviderID', { serviceProviderID: 815 }],
    ['authenticationCode', { authenticationCode: 'AAAA' }],
  ])('refuses a request whose %s was changed after signing', async (_, change) => {
    expect(await outcomeOf({ ...signed(request()), ...change })).toEqual([401, 1]);
  });

  it('refuses a wrong secret, an unknown application and another spelling of the code in the same way', async () => {
    expect(await outcomeOf(signed(request(), 'wrong'))).toEqual([401, 1]);
    expect(await outcomeOf(signed(request({ applicationKey: 'nobody' })))).toEqual([401, 1]);
    const body = signed(request()) as { authenticationCode: string };
    expect(
      await outcomeOf({ ...body, authenticationCode: body.authenticationCode.replace('=', '') }),
    ).toEqual([401, 1]);
  });

  it.each<[string, number, [number, number]]>([
    ['300 s old', -300_000, [200, 0]],
    ['300 s ahead', 300_000, [200, 0]],
    ['over 300 s old', -300_001, [401, 1]],
    ['over 300 s ahead', 300_001, [401, 1]],
  ])('accepts or refuses a request %s', async (_, offsetMs, expected) => {
    expect(await outcomeOf(signed(request({}, offsetMs)))).toEqual(expected);
  });

  it('refuses the repeated code of a request dated ahead as long as its timestamp is valid', async () => {
    const body = signed(request({}, 295_000));
    expect(await outcomeOf(body)).toEqual([200, 0]);
    // Simulates 500 s for the database. The service's clock does not advance, so the timestamp stays valid.
    await service.database.query(`UPDATE auth.trust_replay SET seen_at = seen_at - interval '500 seconds'`);
    await purge();
    expect(await outcomeOf(body)).toEqual([401, 1]);
    await service.database.query(`UPDATE auth.trust_replay SET seen_at = seen_at - interval '500 seconds'`);
    await purge();
    expect(await service.database.query('SELECT 1 FROM auth.trust_replay')).toEqual([]);
  });

  it('refuses a used code that was purged, on a replica whose clock is two minutes behind', async () => {
    const behind: Clock = {
      now: () => new Date(clock.now().getTime() - 120_000),
      monotonicMs: () => performance.now(),
    };
    for (const [index, environment] of [{}, { TOKEN_RATE_LIMIT_PER_APPLICATION: '1000' }].entries()) {
      const replica = await startReplica(service.database.url, { clock: behind, environment });
      try {
        const send = async (body: object): Promise<[number, number]> => {
          const sent = await postTo(replica, '/auth/token/trust', body);
          return [sent.status, sent.body.rejectionReason];
        };
        // The code was used 370 s ago, when it was fresh.
        const body = signed(request({}, -370_000)) as { authenticationCode: string };
        await service.database.query(
          `INSERT INTO auth.trust_replay VALUES ('demo-backend', decode($1, 'base64'), now() - interval '370 seconds')`,
          [body.authenticationCode],
        );
        expect(await send(body)).toEqual([401, 1]);
        await purge();
        expect(await send(body)).toEqual([401, 1]);
        expect(await send(signed(request({}, -200_000 - index)))).toEqual([200, 0]);
      } finally {
        await replica.close();
      }
    }
  });

  it('stores no replay row for a request that is unproven or too old', async () => {
    const count = async (): Promise<unknown> =>
      service.database.query('SELECT count(*)::int FROM auth.trust_replay');
    const before = await count();
    await outcomeOf(signed(request(), 'wrong'));
    await outcomeOf(signed(request({}, -301_000)));
    expect(await count()).toEqual(before);
  });

  it('distinguishes a proven request for an unknown user from an unproven one', async () => {
    expect(await outcomeOf(signed(request({ userName: 'nobody' })))).toEqual([422, 1]);
    expect(await outcomeOf(signed(request({ persona: 1 })))).toEqual([422, 1]);
  });

  it.each<[string, object]>([
    ['a local time', { requestTimestampUtc: '2026-01-05T10:00:00+02:00' }],
    ['no time zone', { requestTimestampUtc: '2026-01-05T10:00:00' }],
    ['an impossible day', { requestTimestampUtc: '2026-02-30T10:00:00Z' }],
    ['a line feed in the user name', { userName: 'carl\ncustomer' }],
    ['a fraction as an identifier', { personID: 1.5 }],
    ['an identifier outside the safe range', { personID: 2 ** 60 }],
    ['persona 0', { persona: 0 }],
  ])('refuses %s as invalid', async (_, change) => {
    expect(await outcomeOf({ ...signed(request()), ...change })).toEqual([400, 7]);
  });

  it('ignores an unknown field, which is not signed', async () => {
    expect(await outcomeOf({ ...signed(request()), scope: 'all' })).toEqual([200, 0]);
  });

  it('accepts the two newest secrets of an application until they expire', async () => {
    const addSecret = (version: number, secret: string, expires: string): Promise<unknown> =>
      service.database.query(
        `INSERT INTO auth.application_secret (application_key, version, ciphertext, expires_at)
         VALUES ($1, $2, $3, now() + $4::interval)`,
        [
          BACKEND.applicationKey,
          version,
          SECRET_BOX.seal(applicationSecretPurpose(BACKEND.applicationKey), Buffer.from(secret)),
          expires,
        ],
      );
    await addSecret(2, 'the-second-secret', '1 day');
    expect(await outcomeOf(signed(request()))).toEqual([200, 0]);
    expect(await outcomeOf(signed(request(), 'the-second-secret'))).toEqual([200, 0]);
    await addSecret(3, 'the-third-secret', '1 day');
    expect(await outcomeOf(signed(request()))).toEqual([401, 1]);
    await service.database.query(`UPDATE auth.application_secret SET expires_at = now() WHERE version = 3`);
    expect(await outcomeOf(signed(request(), 'the-third-secret'))).toEqual([401, 1]);
    expect(await outcomeOf(signed(request()))).toEqual([200, 0]);
  });

  it('issues the other services’ token provider a token that can read the revocations', async () => {
    // The database dates the token, but this clock has stood still since the file began, and a token may be
    // at most 30 s ahead.
    clock.advance(Math.max(0, Date.now() - clock.now().getTime()));
    const tokens = new TokenProvider({
      authServiceUrl: await service.app.getUrl(),
      applicationKey: 'platform-services',
      sharedSecret: PLATFORM_SECRET,
      persona: 1,
      userName: 'svc.platform',
      now: () => clock.now(),
    });
    const token = await tokens.getToken();
    expect(claimsOf(token)).toMatchObject({
      sub: 'userid:9000',
      personas: 1,
      client_id: 'platform-services',
    });
    expect((await service.get('/auth/revocations?limit=10', token)).status).toBe(200);
  });

  it('stores no secret in plain text', async () => {
    const rows = await service.database.query<{ text: string }>(
      `SELECT encode(ciphertext, 'escape') AS text FROM auth.application_secret`,
    );
    expect(rows.some(({ text }) => text.includes('demo-backend-secret'))).toBe(false);
  });
});
