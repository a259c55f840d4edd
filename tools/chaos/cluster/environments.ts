import { ownerEnvironment, serviceEnvironment, type PlatformSettings } from '#platform/environments.ts';
import { SERVICES, type Service } from '#platform/programs.ts';
import type { ServiceName } from '../plan.ts';

/** Where one replica finds everything: its own ports, and its own relays to the servers. */
export interface ReplicaAddresses {
  readonly port: number;
  readonly metricsPort: number;
  readonly databaseUrl: string;
  readonly authUrl: string;
  readonly mainBusUrl: string;
  readonly schedulingBusUrl: string;
}

/** How long a stopping service stays reachable. A multiple of the balancer's probe interval. */
const SHUTDOWN_GRACE_MS = 1_500;
/** Shorter than a caller's patience, so that callers hear 504 instead of giving up. */
const REQUEST_TIMEOUT_MS = 8_000;

export function serviceOf(name: ServiceName): Service {
  const service = SERVICES.find((candidate) => candidate.service === name);
  if (service === undefined) throw new Error(`there is no service ${name}`);
  return service;
}

/** Environment of one replica: as in production, single sign-on left out (its provider here has no certificate). */
export function replicaEnvironment(
  name: ServiceName,
  settings: PlatformSettings,
  at: ReplicaAddresses,
): Record<string, string> {
  const all = { ...serviceEnvironment(serviceOf(name), settings) };
  const kept = Object.entries(all).filter(([variable]) => !variable.startsWith('OPENID_'));
  return {
    ...Object.fromEntries(kept),
    NODE_ENV: 'production',
    PORT: String(at.port),
    METRICS_PORT: String(at.metricsPort),
    DATABASE_URL: at.databaseUrl,
    SHUTDOWN_GRACE_MS: String(SHUTDOWN_GRACE_MS),
    ...(name === 'auth' ? {} : { AUTH_SERVICE_URL: at.authUrl }),
    ...(name === 'task'
      ? {
          RABBITMQ_MAIN_URL: at.mainBusUrl,
          RABBITMQ_SCHEDULING_URL: at.schedulingBusUrl,
          REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
        }
      : {}),
  };
}

/** Environment of migrations, and of loading the development identities (which production refuses). */
export function preparationEnvironment(
  name: ServiceName,
  settings: PlatformSettings,
): Record<string, string> {
  return { ...ownerEnvironment(serviceOf(name), settings), NODE_ENV: 'test' };
}

/** `url` with another port. */
export function throughPort(url: string, port: number): string {
  const moved = new URL(url);
  moved.port = String(port);
  return moved.href;
}
