import { randomBytes } from 'node:crypto';

export type Variables = Readonly<Record<string, string>>;
export type ServiceName = 'auth' | 'settings' | 'task';
export type NeighbourName = 'customers' | 'scheduling' | 'completion-receiver' | 'identity-provider';
export type ProgramName = ServiceName | NeighbourName;

export const SERVICE_NAMES = ['auth', 'settings', 'task'] as const satisfies readonly ServiceName[];
export const NEIGHBOUR_NAMES = [
  'customers',
  'scheduling',
  'completion-receiver',
  'identity-provider',
] as const satisfies readonly NeighbourName[];

/** How long readiness says 503 before a service stops accepting. Long enough to be seen, short enough for a test. */
export const SHUTDOWN_GRACE_MS = 2_000;

/** Password of every development identity. Source: the development identities in the README. */
export const DEVELOPMENT_PASSWORD = 'Demo-Passw0rd!';
/** The auth service as the identity provider knows it. */
const OPENID_CLIENT_ID = 'auth-service';

/** What the environments of all processes of one platform are made from. */
export interface PlatformFacts {
  ports: Readonly<Record<ProgramName, number>>;
  metricsPorts: Readonly<Record<ServiceName, number>>;
  /** Database of each service, as the role the service runs under and as the role that owns the schema. */
  databases: Readonly<Record<ServiceName, { url: string; ownerUrl: string }>>;
  /** Two virtual hosts: what is sent over the wrong bus gets lost and a journey fails. */
  mainBusUrl: string;
  schedulingBusUrl: string;
  stateDirectory: string;
  secrets: PlatformSecrets;
}

/** Made anew for every platform. */
export interface PlatformSecrets {
  accessTokenKey: string;
  refreshTokenKey: string;
  encryptionKey: string;
  cursorKey: string;
  serviceSecret: string;
  openIdClientSecret: string;
}

export function makeSecrets(): PlatformSecrets {
  const secret = (): string => randomBytes(32).toString('base64url');
  return {
    accessTokenKey: secret(),
    refreshTokenKey: secret(),
    encryptionKey: secret(),
    cursorKey: secret(),
    serviceSecret: secret(),
    openIdClientSecret: secret(),
  };
}

/** Address of a program on this machine. */
export function localUrl(port: number): string {
  return `http://127.0.0.1:${port}`;
}

/** Environment of one replica of a service, as in production except that it listens on this machine only, and that the auth service
 *  reaches its identity provider over plain http. */
export function serviceVariables(
  name: ServiceName,
  facts: PlatformFacts,
  ports: { port: number; metricsPort: number },
): Variables {
  const { ports: table, secrets } = facts;
  return {
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: String(ports.port),
    METRICS_PORT: String(ports.metricsPort),
    SHUTDOWN_GRACE_MS: String(SHUTDOWN_GRACE_MS),
    DATABASE_URL: facts.databases[name].url,
    ...tokenVariables(facts),
    AUTH_SERVICE_URL: localUrl(table.auth),
    CURSOR_HMAC_KEY: secrets.cursorKey,
    ...(name === 'auth' ? authVariables(facts) : ownIdentity(secrets)),
    ...(name === 'task' ? busVariables(facts) : {}),
  };
}

/** What checking access tokens takes. */
export function tokenVariables({ secrets }: PlatformFacts): Variables {
  return {
    TOKEN_ISSUER: 'https://auth.platform.test',
    TOKEN_AUDIENCE: 'platform-e2e',
    ACCESS_TOKEN_HMAC_KEY: secrets.accessTokenKey,
    ACCESS_TOKEN_HMAC_KEY_ID: 'access-e2e',
  };
}

/** Environment of a service's migrate program and of loading the development identities. */
export function ownerVariables(name: ServiceName, facts: PlatformFacts): Variables {
  return {
    ...serviceVariables(name, facts, { port: 0, metricsPort: 0 }),
    // Production refuses to load identities whose passwords stand in the README.
    NODE_ENV: 'test',
    MIGRATION_DATABASE_URL: facts.databases[name].ownerUrl,
  };
}

/** Environment of a neighbour. */
export function neighbourVariables(name: NeighbourName, facts: PlatformFacts): Variables {
  return {
    HOST: '127.0.0.1',
    PORT: String(facts.ports[name]),
    STATE_DIRECTORY: facts.stateDirectory,
    CLIENT_ID: OPENID_CLIENT_ID,
    CLIENT_SECRET: facts.secrets.openIdClientSecret,
    USER_PASSWORD: DEVELOPMENT_PASSWORD,
    REDIRECT_URIS: openIdRedirectUri(facts),
    ...busVariables(facts),
  };
}

/** What the tour reads: where everybody answers. */
export function tourVariables({ ports }: PlatformFacts): Variables {
  return {
    AUTH_URL: localUrl(ports.auth),
    SETTINGS_URL: localUrl(ports.settings),
    TASK_URL: localUrl(ports.task),
    CUSTOMERS_URL: localUrl(ports.customers),
    SCHEDULING_URL: localUrl(ports.scheduling),
    RECEIVER_URL: localUrl(ports['completion-receiver']),
    IDENTITY_PROVIDER_URL: localUrl(ports['identity-provider']),
  };
}

function authVariables(facts: PlatformFacts): Variables {
  const { ports, secrets } = facts;
  return {
    // Production refuses OPENID_HTTP_ALLOWED, and the identity provider has no certificate.
    NODE_ENV: 'test',
    REFRESH_TOKEN_HMAC_KEY: secrets.refreshTokenKey,
    REFRESH_TOKEN_HMAC_KEY_ID: 'refresh-e2e',
    SECRET_ENCRYPTION_KEY: secrets.encryptionKey,
    CUSTOMERS_SERVICE_URL: localUrl(ports.customers),
    USER_FLOW_DEFAULT_APPLICATION: 'demo-backend',
    DEVELOPMENT_SERVICE_SECRET: secrets.serviceSecret,
    OPENID_ISSUER: localUrl(ports['identity-provider']),
    OPENID_CLIENT_ID,
    OPENID_CLIENT_SECRET: secrets.openIdClientSecret,
    OPENID_REDIRECT_URI: openIdRedirectUri(facts),
    OPENID_DEFAULT_APPLICATION: 'demo-backend',
    OPENID_HTTP_ALLOWED: 'true',
  };
}

function openIdRedirectUri({ ports }: PlatformFacts): string {
  return `${localUrl(ports.auth)}/auth/token/openId`;
}

function ownIdentity({ serviceSecret }: PlatformSecrets): Variables {
  return {
    SERVICE_APPLICATION_KEY: 'platform-services',
    SERVICE_SHARED_SECRET: serviceSecret,
    SERVICE_USER_NAME: 'svc.platform',
  };
}

function busVariables({ mainBusUrl, schedulingBusUrl }: PlatformFacts): Variables {
  return {
    RABBITMQ_MAIN_URL: mainBusUrl,
    RABBITMQ_SCHEDULING_URL: schedulingBusUrl,
    MESSAGE_NAMESPACE: 'Platform.Contracts',
  };
}
