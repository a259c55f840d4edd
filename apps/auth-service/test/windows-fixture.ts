import { TcpProxy, createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { migrateWithIdentities } from './auth-fixture';
import { KerberosRealm, REALM, SERVICE } from './kerberos-realm';
import { ensureBuilt, startReplicaProcess } from './replica-processes';
import type { ReplicaProcess } from './replica-processes';

/**
 * A replica in its own process, because the Kerberos library reads a process's real environment, which a test
 * cannot set for itself.
 */
export type Replica = ReplicaProcess;

/** The outcome of a sign-in. */
export interface Outcome {
  status: number;
  /** Undefined if the response is not a TokenResponse. */
  reason: number | undefined;
  headers: Headers;
  accessToken: string;
  refreshToken: string | null;
}

/**
 * A Kerberos realm, a database with the development identities, and replicas that accept the realm's tickets.
 */
export class WindowsFixture {
  private readonly replicas: Replica[] = [];

  private constructor(
    readonly realm: KerberosRealm,
    readonly database: TestDatabase,
    /** A proxy in front of the database. */
    readonly proxy: TcpProxy,
  ) {}

  static async start(): Promise<WindowsFixture> {
    await ensureBuilt();
    const realm = await KerberosRealm.start();
    try {
      const database = await createTestDatabase({ migrate: migrateWithIdentities });
      return new WindowsFixture(realm, database, await TcpProxy.start(database.url));
    } catch (error) {
      await realm.stop();
      throw error;
    }
  }

  /** Returns a replica's settings for the realm. */
  async environment(name: string, clockSkewSeconds?: number): Promise<NodeJS.ProcessEnv> {
    return {
      WINDOWS_AUTHENTICATION: 'negotiate',
      WINDOWS_REALM: REALM,
      WINDOWS_SERVICE_PRINCIPAL: SERVICE,
      WINDOWS_FLOW_DEFAULT_APPLICATION: 'demo-backend',
      ...(await this.realm.acceptorEnvironment(name, clockSkewSeconds)),
    };
  }

  async startReplica(
    name: string,
    options: { databaseUrl?: string; clockSkewSeconds?: number } = {},
  ): Promise<Replica> {
    const environment = await this.environment(name, options.clockSkewSeconds);
    const replica = await startReplicaProcess(options.databaseUrl ?? this.database.url, environment);
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

/** Requests a token from a replica with this `Authorization` header. */
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
