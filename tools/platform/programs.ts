import type { PortName } from './ports.ts';

/** A program of the platform: what npm start builds, starts and waits for. */
export interface Deployable {
  /** Name of its process, log file and progress line. */
  readonly name: string;
  /** Bundle in dist/. */
  readonly bundle: string;
  readonly port: PortName;
}

/** A service with a database of its own. */
export interface Service extends Deployable {
  readonly service: ServiceName;
  readonly migrate: string;
  readonly metricsPort: PortName;
}

export type ServiceName = 'auth' | 'settings' | 'task';

/** The project folders that `tools/build/bundle.ts` is called with. */
export const PROJECT_ROOTS = [
  'apps/auth-service',
  'apps/settings-service',
  'apps/task-service',
  'tools/neighbours',
];

function service(name: ServiceName): Service {
  return {
    service: name,
    name: `${name}-service`,
    bundle: `dist/apps/${name}-service/main.js`,
    migrate: `dist/apps/${name}-service/migrate.js`,
    port: name,
    metricsPort: `${name}-metrics`,
  };
}

export const SERVICE_NAMES = ['auth', 'settings', 'task'] as const satisfies readonly ServiceName[];
export const SERVICES: readonly Service[] = SERVICE_NAMES.map(service);

/** Loads ivy, carl and the others into the auth service's database. */
export const LOAD_IDENTITIES = 'dist/apps/auth-service/load-development-identities.js';

export const NEIGHBOURS: readonly Deployable[] = [
  { name: 'customers', bundle: 'dist/tools/neighbours/customers.js', port: 'customers' },
  { name: 'scheduling', bundle: 'dist/tools/neighbours/scheduling.js', port: 'scheduling' },
  {
    name: 'completion-receiver',
    bundle: 'dist/tools/neighbours/completion-receiver.js',
    port: 'completions',
  },
  { name: 'identity-provider', bundle: 'dist/tools/neighbours/identity-provider.js', port: 'openid' },
];

/** The service of this name. */
export function serviceOf(name: ServiceName): Service {
  const found = SERVICES.find(({ service }) => service === name);
  if (found === undefined) throw new RangeError(`there is no service ${name}`);
  return found;
}
