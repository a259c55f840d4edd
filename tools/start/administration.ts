import { readServiceEnvironment, type Variables } from '#platform/state-folder.ts';

/** The services with an administration command line (`admin.js` in their bundle), and the variables it reads. */
const VARIABLES = {
  auth: ['DATABASE_URL', 'MIGRATION_DATABASE_URL', 'SECRET_ENCRYPTION_KEY'],
  settings: ['DATABASE_URL'],
  task: ['DATABASE_URL', 'RABBITMQ_MAIN_URL', 'RABBITMQ_SCHEDULING_URL'],
} as const;

export type AdministeredService = keyof typeof VARIABLES;

export function isAdministeredService(name: string | undefined): name is AdministeredService {
  return name !== undefined && Object.hasOwn(VARIABLES, name);
}

/** What administering a service takes and nothing else of its environment, as the last start of this state folder noted it; empty when
 *  there was none. */
export function readAdministration(stateFolder: string, service: AdministeredService): Variables {
  const environment = readServiceEnvironment(stateFolder, `${service}-service`);
  if (environment === null) return {};
  return Object.fromEntries(VARIABLES[service].map((name) => [name, environment[name] ?? '']));
}
