import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import {
  BACKEND,
  agentOf,
  bearerOf,
  headerOf,
  migrateWithIdentities,
  postTo,
  startReplica,
} from './auth-fixture';
import type { Replica } from './auth-fixture';
import { startReplicaProcess } from './replica-processes';

async function signIn(app: Replica): Promise<{ accessToken: string; refreshToken: string }> {
  const user = { persona: 1, userName: 'ivy.internal' };
  const { body } = await postTo(app, '/auth/token/trust-simple', { ...BACKEND, ...user });
  expect(body.wasSuccessful).toBe(true);
  return body;
}

const me = async (app: Replica, token: string): Promise<number> =>
  (await bearerOf(agentOf(app).get('/auth/me'), token)).status;

describe('signing by configuration', () => {
  let database: TestDatabase;
  const stops: (() => Promise<unknown>)[] = [];
  const start = async (environment: NodeJS.ProcessEnv): Promise<Replica> => {
    const app = await startReplica(database.url, { environment });
    stops.push(() => app.close());
    return app;
  };
  const startProcess = async (environment: NodeJS.ProcessEnv): Promise<Replica> => {
    const running = await startReplicaProcess(database.url, environment);
    stops.push(() => running.stop());
    return running.url;
  };
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
  });
  afterAll(async () => {
    await Promise.all(stops.map((stop) => stop()));
    await database.drop();
  });

  const refreshed = async (app: Replica, refreshToken: string, hmacSigning?: boolean): Promise<unknown> => {
    const { body } = await postTo(app, '/auth/token/refresh', { refreshToken, hmacSigning });
    return { alg: headerOf(body.accessToken).alg, refreshToken: body.refreshToken };
  };

  it('signs with HS256 unless configured or requested otherwise', async () => {
    const app = await start({});
    const { accessToken, refreshToken } = await signIn(app);
    expect(headerOf(accessToken).alg).toBe('HS256');
    const first = await refreshed(app, refreshToken);
    expect(first).toMatchObject({ alg: 'HS256' });
    const next = (first as { refreshToken: string }).refreshToken;
    expect(await refreshed(app, next, false)).toMatchObject({ alg: 'ES256' });
  });

  it('accepts tokens of a replica that starts signing with another algorithm, without waiting for a reload', async () => {
    const [old, changed] = await Promise.all([
      startProcess({ SIGNING_KEYS_RELOAD_MS: '60000' }),
      startProcess({ ACCESS_TOKEN_DEFAULT_SIGNING: 'asymmetric', ASYMMETRIC_SIGNING_ALGORITHM: 'RS256' }),
    ]);
    const { accessToken } = await signIn(changed);
    expect(headerOf(accessToken).alg).toBe('RS256');
    expect(await me(old, accessToken)).toBe(200);
  }, 120_000);

  it('rotates HMAC keys without an outage while processes with the old and the new configuration run', async () => {
    const secret = (): string => randomBytes(32).toString('base64url');
    const [oldKey, newKey, oldRefresh, newRefresh] = [secret(), secret(), secret(), secret()];
    const accepted = {
      ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: `a-old:${oldKey},a-new:${newKey}`,
      REFRESH_TOKEN_PREVIOUS_HMAC_KEYS: `r-old:${oldRefresh},r-new:${newRefresh}`,
    };
    const signing = (age: 'old' | 'new', access: string, refresh: string): NodeJS.ProcessEnv => ({
      ACCESS_TOKEN_HMAC_KEY: access,
      ACCESS_TOKEN_HMAC_KEY_ID: `a-${age}`,
      REFRESH_TOKEN_HMAC_KEY: refresh,
      REFRESH_TOKEN_HMAC_KEY_ID: `r-${age}`,
    });
    const [oldReplica, newReplica, finished] = await Promise.all([
      startProcess({ ...signing('old', oldKey, oldRefresh), ...accepted }),
      startProcess({ ...signing('new', newKey, newRefresh), ...accepted }),
      startProcess(signing('new', newKey, newRefresh)),
    ]);
    const [before, after] = [await signIn(oldReplica), await signIn(newReplica)];
    expect([headerOf(before.accessToken).kid, headerOf(after.accessToken).kid]).toEqual(['a-old', 'a-new']);
    for (const app of [oldReplica, newReplica])
      for (const { accessToken } of [before, after]) expect(await me(app, accessToken)).toBe(200);
    expect(await refreshed(newReplica, before.refreshToken)).toMatchObject({ alg: 'HS256' });
    expect(await refreshed(oldReplica, after.refreshToken)).toMatchObject({ alg: 'HS256' });

    expect(await me(finished, after.accessToken)).toBe(200);
    expect(await me(finished, before.accessToken)).toBe(401);
    const { body } = await postTo(finished, '/auth/token/refresh', { refreshToken: before.refreshToken });
    expect(body.rejectionReason).toBe(4);
  }, 120_000);

  it('accepts the tokens of configured legacy issuers, each only under its own key', async () => {
    const oldKey = randomBytes(32);
    const issuer = 'https://old.platform.test';
    const keys = [{ kid: 'old', secret: oldKey.toString('base64url') }];
    const configured = await start({ LEGACY_ISSUERS: JSON.stringify([{ issuer, audience: 'old', keys }]) });
    const unconfigured = await start({});
    const token = legacyToken(oldKey, 'old', { iss: issuer, aud: 'old' });
    expect(await me(configured, token)).toBe(200);
    expect(await me(unconfigured, token)).toBe(401);
    const refused = [
      legacyToken(randomBytes(32), 'old', { iss: issuer, aud: 'old' }),
      legacyToken(oldKey, 'old', { iss: issuer, aud: 'platform-test' }),
      legacyToken(oldKey, 'old', { iss: 'https://auth.platform.test', aud: 'platform-test' }),
    ];
    for (const each of refused) expect(await me(configured, each)).toBe(401);
  });
});

/** Returns a token like those of older issuers: HS256, without `typ`. */
function legacyToken(secret: Buffer, kid: string, claims: { iss: string; aud: string }): string {
  const iat = Math.floor(Date.now() / 1_000);
  const parts = [
    { alg: 'HS256', kid },
    { ...claims, sub: 'personid:1001', jti: randomUUID(), iat, exp: iat + 60, personId: 1001 },
  ];
  const signed = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}
