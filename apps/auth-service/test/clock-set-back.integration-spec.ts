import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { eventually } from '@platform/testing';
import {
  PASSWORD,
  agentOf,
  bearerOf,
  claimsOf,
  expectOutcome,
  postTo,
  startAuthService,
  startReplica,
} from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

/** A standby that is behind by so much has taken over. */
const BEHIND_SECONDS = 20;

describe('the database’s clock goes back', () => {
  let service: AuthFixture;
  let late: NestFastifyApplication | undefined;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(async () => {
    await late?.close();
    await service.stop();
  });

  const signIn = async (user: string): Promise<Tokens> => {
    const { status, body } = await postTo(service.app, '/auth/token/user', { user, password: PASSWORD });
    expect(status).toBe(200);
    return body as Tokens;
  };

  /** For connections that are opened from now on. */
  async function setClockBack(): Promise<void> {
    const role = new URL(service.database.url).username;
    const [row] = await service.database.query<{ name: string }>('SELECT current_database() AS name');
    await service.database.query(`CREATE SCHEMA behind`);
    for (const clock of ['now', 'clock_timestamp'])
      await service.database.query(
        `CREATE FUNCTION behind.${clock}() RETURNS timestamptz LANGUAGE sql STABLE
         RETURN pg_catalog.${clock}() - interval '${String(BEHIND_SECONDS)} seconds'`,
      );
    await service.database.query(`GRANT USAGE ON SCHEMA behind TO "${role}"`);
    await service.database.query(
      `ALTER DATABASE "${row!.name}" SET search_path = behind, pg_catalog, public`,
    );
  }

  it('a revocation covers the tokens that were issued before, and their sessions’ tokens', async () => {
    const admin = await signIn('ivy.internal');
    const rita = await signIn('rita.resident');
    const carl = await signIn('carl.customer');
    await setClockBack();
    const replica = await startReplica(service.database.url);
    late = replica;
    const [clock] = await service.database.query<{ present: Date }>('SELECT behind.now() AS present');
    expect(Number(claimsOf(rita.accessToken)['iat'])).toBeGreaterThan(clock!.present.getTime() / 1_000 + 5);

    for (const key of ['svc-personid/1003', `sub/${String(claimsOf(carl.accessToken)['sub'])}`])
      await bearerOf(agentOf(replica).put(`/auth/revocations/${key}`), admin.accessToken).expect(200);
    for (const { accessToken, refreshToken } of [rita, carl]) {
      await expectOutcome(postTo(replica, '/auth/token/refresh', { refreshToken }), {
        status: 401,
        reason: 6,
      });
      await eventually(async () => {
        await bearerOf(agentOf(replica).get('/auth/me'), accessToken).expect(401);
      });
    }
  });
});
