import { randomBytes } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createServiceApplication, loadConfig } from '@platform/service-defaults';
import { runMigrations } from '@platform/database';
import {
  createTestDatabase,
  keyOfRun,
  recordSecret,
  sharedMigration,
  watchLog,
  watchTraffic,
} from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import type { Clock } from '@platform/time';
import request from 'supertest';
import type { Test } from 'supertest';
import { authConfigSchema } from '../src/config';
import { loadDevelopmentIdentities } from '../src/development/load-identities';
import { SecretBox } from '../src/keys/secret-box';
import { SCHEMAS } from '../src/migrations/schemas';
import { authService } from '../src/service-definition';
import type { TokenResponse } from '../src/token/token.dto';
import { refreshTokenClaimsOf, signRefreshToken } from '../src/token/token-claims';
import type { RefreshTokenToSign } from '../src/token/token-claims';
import { TokenKeyring } from '../src/token/token-keyring.service';

export const PASSWORD = 'Demo-Passw0rd!';
export const BACKEND = {
  applicationKey: 'demo-backend',
  sharedSecret: 'demo-backend-secret-for-local-use-only-000001',
};
export const REPORTS = {
  applicationKey: 'demo-reports',
  sharedSecret: 'demo-reports-secret-for-local-use-only-000002',
};

/** The secret of the application `platform-services`. */
export const PLATFORM_SECRET = 'platform-services-secret-for-tests';

/** The key that seals secrets in the fixture's databases. */
export const SECRET_KEY = keyOfRun('sealed secrets');

/** Seals secrets like the fixture's replicas. */
export const SECRET_BOX = new SecretBox([{ kid: '1', secret: SECRET_KEY }]);

const key = (): string => randomBytes(32).toString('base64url');

const KEYS = {
  ACCESS_TOKEN_HMAC_KEY: key(),
  ACCESS_TOKEN_HMAC_KEY_ID: 'access-test',
  REFRESH_TOKEN_HMAC_KEY: key(),
  REFRESH_TOKEN_HMAC_KEY_ID: 'refresh-test',
  SECRET_ENCRYPTION_KEY: SECRET_KEY.toString('base64url'),
  CURSOR_HMAC_KEY: key(),
};

/** Returns the environment of one replica on this database. */
export function testEnvironment(databaseUrl: string, overrides: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const environment = {
    NODE_ENV: 'test',
    // Everything is logged, because the suite afterwards searches the logs for every secret used.
    LOG_LEVEL: 'trace',
    PORT: '0',
    METRICS_PORT: '0',
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: '5',
    TOKEN_ISSUER: 'https://auth.platform.test',
    TOKEN_AUDIENCE: 'platform-test',
    CUSTOMERS_SERVICE_URL: 'http://127.0.0.1:9',
    USER_FLOW_DEFAULT_APPLICATION: 'demo-backend',
    ...KEYS,
    ...overrides,
  };
  recordSecretsOf(environment);
  return environment;
}

/** Registers keys and secrets for the scan of the logs, which cannot learn them from requests. */
function recordSecretsOf(environment: NodeJS.ProcessEnv): void {
  for (const [name, value = ''] of Object.entries(environment)) {
    if (!/_(KEYS?|SECRET)$/.test(name)) continue;
    // Lists have entries of the form `kid:secret`.
    for (const entry of value.split(',')) recordSecret(name, entry.slice(entry.indexOf(':') + 1));
  }
  for (const [, secret = ''] of environment.LEGACY_ISSUERS?.matchAll(/"secret":"([^"]+)"/g) ?? [])
    recordSecret('LEGACY_ISSUERS', secret);
  for (const secret of [PASSWORD, BACKEND.sharedSecret, REPORTS.sharedSecret, PLATFORM_SECRET])
    recordSecret('development secret', secret);
}

/** Migrates every schema with the grants of production, and loads the development identities. */
export const migrateWithIdentities = sharedMigration('auth_service', async (ownerUrl, appRole) => {
  for (const { settings, grants } of SCHEMAS)
    await runMigrations({ ...settings, url: ownerUrl }, { appRole, appRoleGrants: grants });
  await loadIdentities(ownerUrl);
});

export async function loadIdentities(ownerUrl: string): Promise<void> {
  await loadDevelopmentIdentities({
    NODE_ENV: 'test',
    DATABASE_URL: ownerUrl,
    SECRET_ENCRYPTION_KEY: SECRET_KEY,
    DEVELOPMENT_SERVICE_SECRET: PLATFORM_SECRET,
  });
}

/** Starts one replica on a free port. */
export async function startReplica(
  databaseUrl: string,
  options: { environment?: NodeJS.ProcessEnv; clock?: Clock } = {},
): Promise<NestFastifyApplication> {
  const config = loadConfig(authConfigSchema, testEnvironment(databaseUrl, options.environment));
  const app = await createServiceApplication({
    ...authService(config),
    logSink: watchLog(`in-process-${process.pid}`),
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
  watchTraffic('auth-service', app.getHttpServer());
  await app.listen(0, '127.0.0.1');
  return app;
}

export interface AuthFixture {
  app: NestFastifyApplication;
  database: TestDatabase;
  get: (path: string, token?: string) => Test;
  put: (path: string, token?: string) => Test;
  post: (path: string, body?: object) => Test;
  stop: () => Promise<void>;
}

/** Creates a database with the development identities, and starts one replica. */
export async function startAuthService(
  options: { environment?: NodeJS.ProcessEnv; clock?: Clock } = {},
): Promise<AuthFixture> {
  const database = await createTestDatabase({ migrate: migrateWithIdentities });
  const app = await startReplica(database.url, options);
  const agent = request(app.getHttpServer());
  return {
    app,
    database,
    get: (path, token) => bearerOf(agent.get(path), token),
    put: (path, token) => bearerOf(agent.put(path), token),
    post: (path, body) => postTo(app, path, body),
    stop: async () => {
      await app.close();
      await database.drop();
    },
  };
}

/** A replica in this process, or the URL of one in another process. */
export type Replica = NestFastifyApplication | string;

/** Returns an agent that sends requests to one replica. */
export function agentOf(replica: Replica): ReturnType<typeof request> {
  return request(typeof replica === 'string' ? replica : replica.getHttpServer());
}

/** Sends a POST to one replica. */
export function postTo(replica: Replica, path: string, body?: object): Test {
  const sent = agentOf(replica).post(path);
  return body === undefined ? sent : sent.send(body);
}

/** Adds a bearer token to the request, if there is one. */
export function bearerOf(sent: Test, token: string | undefined): Test {
  return token === undefined ? sent : sent.set('Authorization', `Bearer ${token}`);
}

/** Returns the payload of a token, unverified. */
export function claimsOf(token: string): Record<string, unknown> {
  return part(token, 1);
}

/** Returns the header of a token, unverified. */
export function headerOf(token: string): Record<string, unknown> {
  return part(token, 0);
}

/**
 * Returns a refresh token with a different subject, like those of an earlier release for technicians without
 * an account.
 */
export function renamedRefreshToken(
  app: NestFastifyApplication,
  refreshToken: string,
  subject: string,
): string {
  const { jti, sid, client_id, iat, exp } = claimsOf(refreshToken) as Record<string, string>;
  return refreshTokenOf(app, {
    jti: jti!,
    sessionId: sid!,
    clientId: client_id!,
    subject,
    issuedAt: new Date(Number(iat) * 1_000),
    expiresAt: new Date(Number(exp) * 1_000),
  });
}

/** Returns a validly signed refresh token with these claims. */
export function refreshTokenOf(app: NestFastifyApplication, token: RefreshTokenToSign): string {
  const { refresh, issuer } = app.get(TokenKeyring).keys();
  return signRefreshToken(refresh, refreshTokenClaimsOf(token, issuer));
}

function part(token: string, index: number): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[index]!, 'base64url').toString()) as Record<string, unknown>;
}

export interface Outcome {
  status: number;
  reason: number;
}

/** Checks that the response is a complete TokenResponse with this status and reason. */
export async function expectOutcome(
  sent: Promise<{ status: number; body: unknown; headers: unknown }>,
  outcome: Outcome,
): Promise<void> {
  const { status, body, headers } = await sent;
  expect({ status, reason: (body as TokenResponse).rejectionReason }).toEqual(outcome);
  const successful = outcome.reason === 0;
  expect(body).toEqual({
    accessToken: successful ? expect.any(String) : null,
    refreshToken: successful ? (body as TokenResponse).refreshToken : null,
    rejectionReason: outcome.reason,
    rejectionDetails: successful ? null : expect.any(String),
    wasSuccessful: successful,
  });
  expect(headers).toMatchObject({
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
  });
}
