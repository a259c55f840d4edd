import { randomBytes } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createTrustRequest } from '@platform/auth-client';
import { runMigrations } from '@platform/database';
import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { decodeJwt } from 'jose';
import request from 'supertest';
import { developmentConfigSchema, loadDevelopmentIdentities } from '../src/development/load-identities';
import { installationConfigSchema, installPlatformServices } from '../src/installation/platform-services';
import { SCHEMAS } from '../src/migrations/schemas';
import { administrator } from './admin-fixture';
import { SECRET_KEY, startReplica } from './auth-fixture';

const newSecret = (): string => randomBytes(32).toString('base64url');

describe('installing the identity of the other services on an empty database', () => {
  let database: TestDatabase;
  let app: NestFastifyApplication;

  beforeEach(async () => {
    database = await createTestDatabase({
      migrate: async (ownerUrl, appRole) => {
        for (const { settings, grants } of SCHEMAS)
          await runMigrations({ ...settings, url: ownerUrl }, { appRole, appRoleGrants: grants });
      },
    });
    app = await startReplica(database.url);
  });

  afterEach(async () => {
    await app.close();
    await database.drop();
  });

  function install(sharedSecret: string): Promise<string[]> {
    return installPlatformServices(
      installationConfigSchema.parse({
        DATABASE_URL: database.ownerUrl,
        SECRET_ENCRYPTION_KEY: SECRET_KEY.toString('base64url'),
        SERVICE_SHARED_SECRET: sharedSecret,
      }),
    );
  }

  /** Signs in like a service that reads revocations. */
  async function signIn(sharedSecret: string, userName = 'svc.platform'): Promise<number> {
    const asked = { applicationKey: 'platform-services', persona: 1, userName };
    const { status, body: response } = await request(app.getHttpServer())
      .post('/auth/token/trust')
      .send(createTrustRequest(asked, sharedSecret, new Date()));
    if (status === 200) expect(decodeJwt(response.accessToken as string)).toMatchObject({ personas: 1 });
    return status;
  }

  it('lets the services sign in, and is idempotent', async () => {
    const secret = newSecret();
    expect(await signIn(secret)).toBe(401);
    expect(await install(secret)).toEqual([
      'user svc.platform: made',
      'application platform-services: registered',
    ]);
    expect(await signIn(secret)).toBe(200);
    expect(await install(secret)).toEqual([
      'user svc.platform: there already',
      'application platform-services: there already',
    ]);
    expect(await signIn(secret)).toBe(200);
    expect(await database.query('SELECT version FROM auth.application_secret')).toHaveLength(1);
  });

  it('allows only the one user', async () => {
    const secret = newSecret();
    await install(secret);
    await database.query(`INSERT INTO internal_legacy.internal_user (user_id, user_name, user_name_key, display_name)
      VALUES (77, 'other', 'other', 'Other')`);
    expect(await signIn(secret, 'other')).toBe(422);
  });

  it('adds a new secret beside the current one', async () => {
    const [first, second, third] = [newSecret(), newSecret(), newSecret()] as const;
    await install(first);
    expect((await install(second))[1]).toBe('application platform-services: has the new secret too');
    expect([await signIn(first), await signIn(second)]).toEqual([200, 200]);
    await install(third);
    expect([await signIn(first), await signIn(second), await signIn(third)]).toEqual([401, 200, 200]);
  });

  it('works when several programs run it concurrently, with other users in the store', async () => {
    await database.query(`INSERT INTO internal_legacy.internal_user (user_id, user_name, user_name_key, display_name)
      VALUES (9001, 'ivy', 'ivy', 'Ivy')`);
    const secret = newSecret();
    await Promise.all([install(secret), install(secret), install(secret)]);
    expect(await signIn(secret)).toBe(200);
    const users = await database.query(
      `SELECT user_id::int AS id FROM internal_legacy.internal_user ORDER BY 1`,
    );
    expect(users).toEqual([{ id: 9001 }, { id: 9002 }]);
  });

  it('works before and after loading the development identities', async () => {
    const secret = newSecret();
    const load = (): Promise<void> =>
      loadDevelopmentIdentities(
        developmentConfigSchema.parse({
          DATABASE_URL: database.ownerUrl,
          SECRET_ENCRYPTION_KEY: SECRET_KEY.toString('base64url'),
          DEVELOPMENT_SERVICE_SECRET: secret,
        }),
      );
    await install(secret);
    await load();
    expect(await signIn(secret)).toBe(200);
    expect((await install(secret))[0]).toBe('user svc.platform: there already');
    await load();
    expect(await signIn(secret)).toBe(200);
  });

  it('does not enable a disabled application', async () => {
    const secret = newSecret();
    await install(secret);
    await administrator(database.ownerUrl).json('applications disable platform-services');
    await expect(install(secret)).rejects.toThrow('application platform-services is disabled');
    expect(await signIn(secret)).toBe(401);
  });
});
