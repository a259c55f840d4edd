import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { neighbourEnvironment, ownerEnvironment, serviceEnvironment } from '#platform/environments.ts';
import { FriendlyError } from '#platform/errors.ts';
import { isPortFree } from '#platform/ports.ts';
import {
  build,
  type Deployable,
  LOAD_IDENTITIES,
  NEIGHBOUR_STAGE,
  NEIGHBOURS,
  nodeProcess,
  Program,
  type Service,
  serviceOf,
  SERVICES,
} from '#platform/programs.ts';
import { findRunRecord, isSupervised, sweepLeftovers } from '#platform/run-record.ts';
import { saveServiceEnvironment, type Variables } from '#platform/state-folder.ts';
import type { Supervisor } from '#platform/supervisor.ts';
import { becomesTrue } from '#platform/waiting.ts';
import { describeTakenPorts, portsToOpen, type StartArguments } from './arguments.ts';
import type { ExternalServers } from './external-servers.ts';
import { PRIVATE_SECRETS, Servers } from './servers.ts';
import type { Progress } from './terminal.ts';

export interface StartContext {
  readonly stateFolder: string;
  readonly args: StartArguments;
  readonly external: ExternalServers;
  readonly supervisor: Supervisor;
  readonly progress: Progress;
}

/** Starts the platform step by step. @throws {FriendlyError} as soon as a step fails. */
export async function startPlatform(context: StartContext): Promise<void> {
  await checkPorts(context);
  if (context.args.reset) reset(context);
  const servers = openServers(context);
  if (context.args.infrastructureOnly) await Promise.all([servers.openDatabases(), servers.openBroker()]);
  else await startEverything(context, servers);
}

/**
 * Starts one service of a running platform again.
 * @throws {FriendlyError} if there is no service of this name, or it does not become ready.
 */
export async function restartService(context: StartContext, name: string): Promise<void> {
  const service = SERVICES.find((each) => each.name === name);
  if (service === undefined) throw new FriendlyError(`There is no service ${name}.`);
  await startProgram(context, service, serviceEnvironment(service, openServers(context).settings));
}

function openServers(context: StartContext): Servers {
  return new Servers({ ...context, ports: context.args.ports });
}

/**
 * Starts each step as soon as the steps that it needs are done: the broker takes longest to boot, and half of
 * the others do not need it.
 */
async function startEverything(context: StartContext, servers: Servers): Promise<void> {
  const { stateFolder, supervisor, progress } = context;
  const { settings } = servers;
  const [auth, settingsService, task] = [serviceOf('auth'), serviceOf('settings'), serviceOf('task')];
  const startService = (service: Service): Promise<void> =>
    startProgram(context, service, serviceEnvironment(service, settings));
  const startNeighbour = (neighbour: Deployable): Promise<void> =>
    startProgram(context, neighbour, neighbourEnvironment(neighbour, settings), NEIGHBOUR_STAGE);
  const run = (name: string, bundle: string, service: Service): Promise<void> =>
    supervisor.run(bundleProcess(name, bundle, ownerEnvironment(service, settings)));

  for (const service of SERVICES)
    saveServiceEnvironment(stateFolder, service.name, ownerEnvironment(service, settings));
  const broker = servers.openBroker();
  const built = progress.step('Services and neighbours built', () => build(supervisor));
  const opened = Promise.all([servers.openDatabases(), built]);
  const migrations = SERVICES.map((service) =>
    opened.then(() => run(`migrate-${service.name}`, service.migrate, service)),
  );
  const allMigrated = Promise.all(migrations);
  const migrated = opened.then(() => progress.step('Databases migrated', () => allMigrated));
  // The other services become ready only once they have read the auth service's revocation feed, so auth does
  // not wait for their migrations.
  const authReady = Promise.resolve(migrations[SERVICES.indexOf(auth)])
    .then(() =>
      progress.step('Development identities loaded', () =>
        run('load-development-identities', LOAD_IDENTITIES, auth),
      ),
    )
    .then(() => startService(auth));
  await Promise.all([
    allMigrated,
    Promise.all([broker, built]).then(() => Promise.all(NEIGHBOURS.map(startNeighbour))),
    Promise.all([authReady, migrated]).then(() => startService(settingsService)),
    Promise.all([authReady, migrated, broker]).then(() => startService(task)),
  ]);
}

async function checkPorts({ args, external }: StartContext): Promise<void> {
  const names = portsToOpen({
    database: external.databaseUrl !== null,
    broker: external.rabbitmqUrl !== null,
    infrastructureOnly: args.infrastructureOnly,
  });
  const free = await Promise.all(names.map((name) => isPortFree(args.ports[name])));
  const taken = names.filter((_name, index) => !free[index]);
  if (taken.length > 0) throw new FriendlyError(describeTakenPorts(taken, args.ports));
}

function reset({ stateFolder, external, progress }: StartContext): void {
  for (const name of ['postgresql', 'rabbitmq', 'neighbours', PRIVATE_SECRETS])
    rmSync(join(stateFolder, name), { recursive: true, force: true });
  const untouched = external.databaseUrl === null ? '' : ' (not the database that DATABASE_URL names)';
  progress.line(`✔ Data of this checkout deleted${untouched}`);
}

function startProgram(
  { supervisor, progress, args }: StartContext,
  { name, bundle, port: portName }: Deployable,
  variables: Variables,
  stage?: number,
): Promise<void> {
  const port = args.ports[portName];
  const process = bundleProcess(name, bundle, variables);
  const program = new Program(supervisor, { ...process, port, ...(stage === undefined ? {} : { stage }) });
  return progress.step(`${name} on port ${port}`, async () => void (await program.start()));
}

/**
 * Returns a process of a bundle with the user's environment, so that `LOG_LEVEL=debug npm start` works, but
 * without npm's variables and the URLs of servers.
 */
export function bundleProcess(
  name: string,
  bundle: string,
  variables: Variables,
  nodeFlags: readonly string[] = [],
) {
  const inherited = Object.entries(process.env).filter(
    ([variable]) => !/^npm_|^INIT_CWD$|^RABBITMQ_URL$|^(MIGRATION_)?DATABASE_URL$/i.test(variable),
  );
  const env = { ...Object.fromEntries(inherited), ...variables };
  return nodeProcess(name, [...nodeFlags, bundle], env);
}

const POLL_MS = 250;

/** Returns the path of the run record that `nx serve` writes while it replaces a service. */
export function servingRecord(stateFolder: string, service: string): string {
  return join(stateFolder, `serve-${service}.json`);
}

/** Whether an `nx serve` currently replaces this service. */
export function isServed(stateFolder: string, service: string): boolean {
  const record = findRunRecord(servingRecord(stateFolder, service));
  return record !== null && isSupervised(record);
}

/** Waits until the `nx serve` of this service has ended, and ends the processes that it left running. */
export async function servingEnded(stateFolder: string, service: string): Promise<void> {
  await becomesTrue(() => !isServed(stateFolder, service), { timeoutMs: Infinity, intervalMs: POLL_MS });
  await sweepLeftovers(servingRecord(stateFolder, service));
}
