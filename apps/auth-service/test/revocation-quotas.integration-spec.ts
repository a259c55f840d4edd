import { randomUUID } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Metrics } from '@platform/service-defaults';
import { BACKEND, agentOf, bearerOf, claimsOf, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

const PER_MINUTE = 3;
const PER_APPLICATION = 7;
const KEPT_PER_CALLER = 5;
const KEPT_PER_APPLICATION = 20;
const LIMITS = {
  REVOCATIONS_PER_MINUTE: String(PER_MINUTE),
  REVOCATIONS_PER_MINUTE_PER_APPLICATION: String(PER_APPLICATION),
  REVOCATIONS_PER_CALLER: String(KEPT_PER_CALLER),
  REVOCATIONS_PER_APPLICATION: String(KEPT_PER_APPLICATION),
};

describe('quotas of revocations of other users, on two replicas', () => {
  let service: AuthFixture;
  let second: NestFastifyApplication;
  beforeEach(async () => {
    service = await startAuthService({ environment: LIMITS });
    second = await startReplica(service.database.url, { environment: LIMITS });
    await service.database.query(
      `INSERT INTO service_providers.provider (provider_id, provider_name) VALUES (816, 'Other'), (817, 'Third')`,
    );
  });
  afterEach(async () => {
    await second.close();
    await service.stop();
  });

  const signIn = async (user: object): Promise<string> => {
    const { status, body } = await service.post('/auth/token/trust-simple', { ...BACKEND, ...user });
    expect(status).toBe(200);
    return body.accessToken as string;
  };
  const technician = (name: string, serviceProviderID = 815): Promise<string> =>
    signIn({ persona: 4, userName: 'anybody', serviceProviderID, name });
  let sent = 0;
  const put = (token: string, key = `jti/${randomUUID()}`) => {
    sent += 1;
    return bearerOf(agentOf(sent % 2 === 0 ? service.app : second).put(`/auth/revocations/${key}`), token);
  };
  const statuses = async (tokens: readonly string[]): Promise<number[]> => {
    const all: number[] = [];
    for (const token of tokens) all.push((await put(token)).status);
    return all;
  };
  const times = <T>(count: number, value: T): T[] => Array<T>(count).fill(value);
  const named = (count: number, prefix: string, provider?: number): Promise<string[]> =>
    Promise.all(times(count, null).map((_, n) => technician(`${prefix} ${String(n)}`, provider)));

  it('technicians without an account share the quota of their provider', async () => {
    expect(await statuses(await named(PER_MINUTE + 1, 'Made Up'))).toEqual([...times(PER_MINUTE, 200), 429]);
    // A technician with an account has their own quota.
    expect(await statuses([await signIn({ persona: 4, userName: 'tess.tech' })])).toEqual([200]);
  });

  it('all callers of an application share its quota, but users can always end their own sessions', async () => {
    const people = [
      await signIn({ persona: 2, userName: 'carl.customer' }),
      await signIn({ persona: 16, userName: 'olga.owner' }),
    ];
    const callers = [...times(3, people[0]!), ...times(3, people[1]!), ...(await named(2, 'Made Up', 816))];
    expect(await statuses(callers)).toEqual([...times(PER_APPLICATION, 200), 429]);
    const [last] = await named(1, 'Another', 817);
    const refused = await put(last!, 'svc-personid/1003');
    expect([refused.status, refused.type]).toEqual([429, 'application/problem+json']);
    expect(refused.body.detail).toContain('this application');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
    const metrics = await Promise.all(
      [service.app, second].map((replica) => replica.get(Metrics).registry.metrics()),
    );
    const refusals = metrics.map((text) =>
      Number(/^auth_revocations_refused_total\{reason="application-per-minute"\} (\d+)$/m.exec(text)?.[1]),
    );
    expect(refusals[0]! + refusals[1]!).toBe(2);
    expect((await bearerOf(service.post('/auth/logout'), last)).status).toBe(204);
    const olga = await signIn({ persona: 16, userName: 'olga.owner' });
    expect((await put(olga, 'svc-personid/1002')).status).toBe(200);
    // Administrators have no quota.
    const ivy = await signIn({ persona: 1, userName: 'ivy.internal' });
    expect(await statuses(times(3, ivy))).toEqual([200, 200, 200]);
  });

  it('an application’s stored revocations are limited, including those by technicians without an account', async () => {
    await service.database.query(
      `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject, counted_client)
       SELECT 'jti', 'j-' || n, now() - interval '1 day', 'technician:815:' || n, 'demo-backend' FROM generate_series(2, $1) AS n`,
      [KEPT_PER_APPLICATION],
    );
    const [one, other] = await named(2, 'Made Up');
    // A revocation of the caller's own subject is not limited.
    const own = `sub/${encodeURIComponent(String(claimsOf(one!)['sub']))}`;
    expect((await put(one!, own)).status).toBe(200);
    const refused = await put(other!);
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '3600']);
    // Setting a stored revocation again takes no further slot.
    expect((await put(other!, 'jti/j-2')).status).toBe(200);
  });

  it('a person is one caller under all identifiers, even those from before an account was linked', async () => {
    await service.database.query(
      `INSERT INTO internal_legacy.internal_user (user_name, user_name_key, display_name, user_id)
       VALUES ('olga.internal', 'olga.internal', 'Olga', 9100)`,
    );
    // Without the persona, the user is not an administrator.
    const before = await signIn({ persona: 16, userName: 'olga.owner' });
    await service.database.query(
      `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject)
       SELECT 'jti', 'k-' || n, now() - interval '1 day', 'userid:9100' FROM generate_series(1, $1) AS n`,
      [KEPT_PER_CALLER],
    );
    expect(await statuses([before])).toEqual([200]);
    await service.database.query(
      `UPDATE internal_legacy.internal_user SET person_id = 1002 WHERE user_id = 9100`,
    );
    expect(await statuses([before])).toEqual([429]);
  });
});
