import { readServiceEnvironment, type Variables } from './state-folder.ts';
import type { DatabaseUrls } from './databases.ts';
import type { PortTable } from './ports.ts';
import type { Deployable, Service, ServiceName } from './programs.ts';

export interface PlatformSettings {
  readonly ports: PortTable;
  readonly databases: Readonly<Record<ServiceName, DatabaseUrls>>;
  /** AMQP URLs with their virtual hosts; `npm start` uses the same URL for both. */
  readonly mainBusUrl: string;
  readonly schedulingBusUrl: string;
  /** Returns the random secret `name` of this state folder. */
  readonly secret: (name: string) => string;
  /** Folder of the neighbours' ledgers. */
  readonly neighboursFolder: string;
}

/** Password of every development identity. Source: the development identities in the README. */
export const DEVELOPMENT_PASSWORD = 'Demo-Passw0rd!';
/**
 * Shared secrets of the development applications, by application key. Source: the development identities in
 * the README.
 */
export const APPLICATION_SECRETS = {
  'demo-backend': 'demo-backend-secret-for-local-use-only-000001',
  'demo-reports': 'demo-reports-secret-for-local-use-only-000002',
} as const;
export const TOKEN_AUDIENCE = 'property-platform';
/** Client id of the auth service at the identity provider. */
const OPENID_CLIENT_ID = 'auth-service';

export function localUrl(port: number): string {
  return `http://127.0.0.1:${port}`;
}

/** Returns the URL of every program, in the variables that the tour and other callers read. */
export function addressVariables(ports: PortTable): Variables {
  return {
    AUTH_URL: localUrl(ports.auth),
    SETTINGS_URL: localUrl(ports.settings),
    TASK_URL: localUrl(ports.task),
    CUSTOMERS_URL: localUrl(ports.customers),
    SCHEDULING_URL: localUrl(ports.scheduling),
    RECEIVER_URL: localUrl(ports.completions),
    IDENTITY_PROVIDER_URL: localUrl(ports.openid),
  };
}

export function serviceEnvironment(service: Service, settings: PlatformSettings): Variables {
  return {
    ...commonVariables(service, settings),
    METRICS_PORT: String(settings.ports[service.metricsPort]),
    DATABASE_URL: settings.databases[service.service].app,
    ...tokenVariables(settings),
    CURSOR_HMAC_KEY: settings.secret(`${service.service}-cursor-hmac-key`),
    ...SPECIFIC[service.service](settings),
  };
}

/**
 * Returns the environment of a service's main program in production. It has no single sign-on, because the
 * local identity provider has no certificate, which production requires.
 */
export function productionEnvironment(service: Service, settings: PlatformSettings): Variables {
  const variables = Object.entries(serviceEnvironment(service, settings));
  const kept = variables.filter(([name]) => !/^(OPENID|DEVELOPMENT)_/.test(name));
  return { ...Object.fromEntries(kept), NODE_ENV: 'production', SHUTDOWN_GRACE_MS: '0' };
}

/**
 * Returns the environment of a service's migrate program, and of the program that loads the development
 * identities.
 */
export function ownerEnvironment(service: Service, settings: PlatformSettings): Variables {
  return {
    ...serviceEnvironment(service, settings),
    MIGRATION_DATABASE_URL: settings.databases[service.service].owner,
  };
}

/** Returns the part of `ownerEnvironment` that a service's main program may have. */
export function withoutOwner({ MIGRATION_DATABASE_URL: _owner, ...variables }: Variables): Variables {
  return variables;
}

export function neighbourEnvironment(neighbour: Deployable, settings: PlatformSettings): Variables {
  return {
    ...commonVariables(neighbour, settings),
    ...tokenVariables(settings),
    ...busVariables(settings),
    STATE_DIRECTORY: settings.neighboursFolder,
    CLIENT_ID: OPENID_CLIENT_ID,
    CLIENT_SECRET: settings.secret('openid-client-secret'),
    USER_PASSWORD: DEVELOPMENT_PASSWORD,
    REDIRECT_URIS: ['openId', 'user/AzureADLogOn']
      .map((path) => `${localUrl(settings.ports.auth)}/auth/token/${path}`)
      .join(','),
  };
}

function commonVariables(deployable: Deployable, { ports }: PlatformSettings): Variables {
  return { NODE_ENV: 'development', HOST: '127.0.0.1', PORT: String(ports[deployable.port]) };
}

/** Returns the variables for validating access tokens. */
export function tokenVariables({ ports, secret }: PlatformSettings): Variables {
  return {
    TOKEN_ISSUER: localUrl(ports.auth),
    TOKEN_AUDIENCE,
    ACCESS_TOKEN_HMAC_KEY: secret('access-token-hmac-key'),
    ACCESS_TOKEN_HMAC_KEY_ID: 'access-development',
    AUTH_SERVICE_URL: localUrl(ports.auth),
  };
}

function busVariables({ mainBusUrl, schedulingBusUrl }: PlatformSettings): Variables {
  return {
    RABBITMQ_MAIN_URL: mainBusUrl,
    RABBITMQ_SCHEDULING_URL: schedulingBusUrl,
    MESSAGE_NAMESPACE: 'Platform.Contracts',
  };
}

/** Returns a service's own credentials at the auth service. */
function ownIdentity({ secret }: PlatformSettings): Variables {
  return {
    SERVICE_APPLICATION_KEY: 'platform-services',
    SERVICE_SHARED_SECRET: secret('service-shared-secret'),
    SERVICE_USER_NAME: 'svc.platform',
  };
}

const SPECIFIC: Readonly<Record<ServiceName, (settings: PlatformSettings) => Variables>> = {
  auth: (settings) => ({
    REFRESH_TOKEN_HMAC_KEY: settings.secret('refresh-token-hmac-key'),
    REFRESH_TOKEN_HMAC_KEY_ID: 'refresh-development',
    SECRET_ENCRYPTION_KEY: settings.secret('secret-encryption-key'),
    CUSTOMERS_SERVICE_URL: localUrl(settings.ports.customers),
    USER_FLOW_DEFAULT_APPLICATION: 'demo-backend',
    DEVELOPMENT_SERVICE_SECRET: settings.secret('service-shared-secret'),
    OPENID_ISSUER: localUrl(settings.ports.openid),
    OPENID_CLIENT_ID,
    OPENID_CLIENT_SECRET: settings.secret('openid-client-secret'),
    OPENID_REDIRECT_URI: `${localUrl(settings.ports.auth)}/auth/token/openId`,
    OPENID_DEFAULT_APPLICATION: 'demo-backend',
    OPENID_HTTP_ALLOWED: 'true',
  }),
  settings: ownIdentity,
  task: (settings) => ({ ...ownIdentity(settings), ...busVariables(settings) }),
};

/** The variables that a service's administration command line (`admin.js` in its bundle) reads. */
const ADMINISTRATION: Readonly<Record<ServiceName, readonly string[]>> = {
  auth: ['DATABASE_URL', 'MIGRATION_DATABASE_URL', 'SECRET_ENCRYPTION_KEY'],
  settings: ['DATABASE_URL'],
  task: ['DATABASE_URL', 'RABBITMQ_MAIN_URL', 'RABBITMQ_SCHEDULING_URL'],
};

/**
 * Returns the variables that a service's administration needs, and no others, as the last start of this state
 * folder saved them; empty before the first start.
 */
export function readAdministration(stateFolder: string, service: ServiceName): Variables {
  const environment = readServiceEnvironment(stateFolder, `${service}-service`);
  if (environment === null) return {};
  return Object.fromEntries(ADMINISTRATION[service].map((name) => [name, environment[name] ?? '']));
}
