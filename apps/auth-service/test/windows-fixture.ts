import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TcpProxy, createTestDatabase, runProcess } from '@platform/testing';
import type { RunningProcess, TestDatabase } from '@platform/testing';
import { migrateWithIdentities, testEnvironment } from './auth-fixture';
import { findFreePort } from './free-port';
import { KerberosRealm, REALM, SERVICE } from './kerberos-realm';

/** The bundled service: the Kerberos library reads a process's real environment, which tests cannot set for themselves. */
export const AUTH_SERVICE = join(__dirname, '../../../dist/apps/auth-service/main.js');

/** One running process of the service. */
export interface Replica extends RunningProcess {
  url: string;
}

/** What a sign-in came to. */
export interface Outcome {
  status: number;
  /** Undefined: the answer is no TokenResponse. */
  reason: number | undefined;
  headers: Headers;
  accessToken: string;
  refreshToken: string | null;
}

/** A Kerberos realm, a database with the development identities, and replicas that accept the realm's tickets. */
export class WindowsFixture {
  private readonly replicas: Replica[] = [];

  private constructor(
    readonly realm: KerberosRealm,
    readonly database: TestDatabase,
    /** In front of the database. */
    readonly proxy: TcpProxy,
  ) {}

  static async start(): Promise<WindowsFixture> {
    if (!existsSync(AUTH_SERVICE)) throw new Error(`${AUTH_SERVICE} is missing: run \`npm run build\` first`);
    const realm = await KerberosRealm.start();
    try {
      const database = await createTestDatabase({ migrate: migrateWithIdentities });
      return new WindowsFixture(realm, database, await TcpProxy.start(database.url));
    } catch (error) {
      await realm.stop();
      throw error;
    }
  }

  async environment(
    name: string,
    options: { databaseUrl?: string; clockSkewSeconds?: number } = {},
  ): Promise<Record<string, string>> {
    const environment = testEnvironment(options.databaseUrl ?? this.database.url, {
      LOG_LEVEL: 'info',
      PORT: String(await findFreePort()),
      METRICS_PORT: String(await findFreePort()),
      WINDOWS_AUTHENTICATION: 'negotiate',
      WINDOWS_REALM: REALM,
      WINDOWS_SERVICE_PRINCIPAL: SERVICE,
      WINDOWS_FLOW_DEFAULT_APPLICATION: 'demo-backend',
      ...(await this.realm.acceptorEnvironment(name, options.clockSkewSeconds)),
    });
    return environment as Record<string, string>;
  }

  async startReplica(
    name: string,
    options: { databaseUrl?: string; clockSkewSeconds?: number } = {},
  ): Promise<Replica> {
    const env = await this.environment(name, options);
    const url = `http://127.0.0.1:${env.PORT}`;
    const running = await runProcess({ entry: AUTH_SERVICE, env, readyUrl: `${url}/health/ready` });
    const replica = { ...running, url };
    this.replicas.push(replica);
    return replica;
  }

  async stop(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.stop()));
    await this.proxy.refuse();
    await this.realm.stop();
    await this.database.drop();
  }
}

/** Asks a replica for a token with this `Authorization` header. */
export async function signIn(replica: Replica, authorization?: string, headers = {}): Promise<Outcome> {
  const response = await fetch(`${replica.url}/auth/token/user/winauth`, {
    headers: { ...headers, ...(authorization === undefined ? {} : { authorization }) },
  });
  const body = (await response.json()) as Record<string, never>;
  return {
    status: response.status,
    reason: body.rejectionReason,
    headers: response.headers,
    accessToken: body.accessToken!,
    refreshToken: body.refreshToken!,
  };
}
