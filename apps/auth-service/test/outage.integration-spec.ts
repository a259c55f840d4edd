import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { TcpProxy, createTestDatabase, eventually } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { ManualClock, SYSTEM_CLOCK } from '@platform/time';
import { BACKEND, PASSWORD, bearerOf, migrateWithIdentities, postTo, startReplica } from './auth-fixture';

/** Upper bound for a response: 3 s to connect, 7 s for a statement, and 2 s for a busy machine. */
const LONGEST_RESPONSE_MS = 12_000;

describe.each(['the service', 'one identity store'])('an outage of the database of %s', (which) => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  let app: NestFastifyApplication;
  let tokens: { accessToken: string; refreshToken: string };

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    proxy = await TcpProxy.start(database.url);
    const isOwn = which === 'the service';
    app = await startReplica(isOwn ? proxy.url : database.url, {
      environment: isOwn ? {} : { SERVICE_PROVIDERS_DATABASE_URL: proxy.url },
    });
    const trusted = { ...BACKEND, persona: 2, userName: 'carl.customer' };
    tokens = (await postTo(app, '/auth/token/trust-simple', trusted)).body as typeof tokens;
  });
  afterAll(async () => {
    await app.close();
    await proxy.stop();
    await database.drop();
  });

  const requests = (): [string, () => ReturnType<typeof postTo>][] => [
    ['user', () => postTo(app, '/auth/token/user', { user: 'carl.customer', password: PASSWORD })],
    [
      'trust-simple',
      () => postTo(app, '/auth/token/trust-simple', { ...BACKEND, persona: 2, userName: 'carl.customer' }),
    ],
    ['refresh', () => postTo(app, '/auth/token/refresh', { refreshToken: tokens.refreshToken })],
    ['bearer', () => bearerOf(postTo(app, '/auth/token/bearer'), tokens.accessToken)],
  ];

  it.each(['refuse', 'freeze'] as const)(
    'causes a 503 in bounded time, never a rejection, and recovery is automatic (%s)',
    async (how) => {
      await proxy[how]();
      const startedMs = performance.now();
      const answers = await Promise.all(
        requests().map(async ([name, send]) => [name, await send()] as const),
      );
      for (const [name, { status, type, headers, body }] of answers) {
        expect({ name, status, type }).toEqual({ name, status: 503, type: 'application/problem+json' });
        expect(headers).toMatchObject({ 'retry-after': expect.any(String), 'cache-control': 'no-store' });
        expect(body).not.toHaveProperty('rejectionReason');
      }
      expect(performance.now() - startedMs).toBeLessThan(LONGEST_RESPONSE_MS);
      await proxy.restore();
      await eventually(async () => {
        const { status, body } = await postTo(app, '/auth/token/refresh', {
          refreshToken: tokens.refreshToken,
        });
        expect(status).toBe(200);
        tokens = body as typeof tokens;
      });
    },
  );
});

describe('an outdated list of revocations', () => {
  it('makes a bearer exchange a 503, not a rejection', async () => {
    const clock = new ManualClock(SYSTEM_CLOCK.now());
    const database = await createTestDatabase({ migrate: migrateWithIdentities });
    const app = await startReplica(database.url, { clock });
    const trusted = { ...BACKEND, persona: 2, userName: 'carl.customer' };
    const { body } = await postTo(app, '/auth/token/trust-simple', trusted);
    clock.advance(31_000);
    const exchanged = await bearerOf(postTo(app, '/auth/token/bearer'), body.accessToken);
    expect([exchanged.status, exchanged.type]).toEqual([503, 'application/problem+json']);
    await eventually(async () => {
      expect((await bearerOf(postTo(app, '/auth/token/bearer'), body.accessToken)).status).toBe(200);
    });
    await app.close();
    await database.drop();
  });
});
