import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError } from '#platform/friendly-error.ts';
import { isPortFree } from '#platform/free-ports.ts';
import { answersOk, waitUntilReady } from '#platform/wait-until.ts';
import { PRIVATE_SECRETS, type StartContext } from './context.ts';
import { LOAD_IDENTITIES, NEIGHBOURS, PROJECT_ROOTS, SERVICES } from '#platform/programs.ts';
import type { Deployable, Service } from '#platform/programs.ts';
import { localUrl, neighbourEnvironment, ownerEnvironment, serviceEnvironment } from '#platform/environments.ts';
import type { PlatformSettings, Variables } from '#platform/environments.ts';
import { secretFileName } from './external-servers.ts';
import { describeTakenPorts, portsToOpen } from '#platform/ports.ts';
import { saveServiceEnvironment } from '#platform/service-environment.ts';
import { chooseBroker, chooseDatabases, openBroker, openDatabases } from './servers.ts';

/** Stages after the private servers' (0 PostgreSQL and epmd, 1 RabbitMQ); the highest stops first. */
const NEIGHBOUR_STAGE = 2;
const SERVICE_STAGE = 3;
const READY_TIMEOUT_MS = 90_000;
/** A service ends its own shutdown after 25 s (SHUTDOWN_TIMEOUT_MS). */
const GRACE_MS = 30_000;

const [AUTH, SETTINGS, TASK] = SERVICES;

/** Brings the platform up step by step. @throws {FriendlyError} as soon as one step fails. */
export async function startPlatform(context: StartContext): Promise<void> {
  await checkPorts(context);
  if (context.args.reset) reset(context);
  if (context.args.infrastructureOnly) {
    await Promise.all([openDatabases(context), openBroker(context)]);
  } else {
    await startEverything(context, platformSettings(context));
  }
}

/** Starts one service of a running platform again. @throws {FriendlyError} when there is none of this name, or it does not get ready. */
export async function restartService(context: StartContext, name: string): Promise<void> {
  const service = SERVICES.find((each) => each.name === name);
  if (service === undefined) throw new FriendlyError(`There is no service ${name}.`);
  const environment = serviceEnvironment(service, platformSettings(context));
  await startProgram(context, service, SERVICE_STAGE, environment);
}

/** Each step begins as soon as what it needs is there: the broker takes the longest to boot, and half the rest can do without. */
async function startEverything(context: StartContext, settings: PlatformSettings): Promise<void> {
  const startService = (service: Service): Promise<void> =>
    startProgram(context, service, SERVICE_STAGE, serviceEnvironment(service, settings));
  const startNeighbour = (neighbour: Deployable): Promise<void> =>
    startProgram(context, neighbour, NEIGHBOUR_STAGE, neighbourEnvironment(neighbour, settings));

  for (const service of SERVICES)
    saveServiceEnvironment(context.stateFolder, service.name, ownerEnvironment(service, settings));
  const built = build(context);
  const broker = openBroker(context);
  const prepared = Promise.all([openDatabases(context), built]).then(() =>
    prepareDatabases(context, settings),
  );
  const auth = prepared.then(() => startService(AUTH));
  await Promise.all([
    Promise.all([broker, built]).then(() => Promise.all(NEIGHBOURS.map(startNeighbour))),
    // The other two are not ready before they have read the auth service's revocation feed.
    auth.then(() => startService(SETTINGS)),
    Promise.all([auth, broker]).then(() => startService(TASK)),
  ]);
}

function platformSettings(context: StartContext): PlatformSettings {
  const { args, external, stateFolder } = context;
  return {
    ports: args.ports,
    databases: chooseDatabases(context),
    rabbitmqUrl: chooseBroker(context),
    secret: (name) => context.secrets(secretFileName(external.databaseUrl)).get(name),
    neighboursFolder: join(stateFolder, 'neighbours'),
  };
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
  for (const name of ['postgresql', 'rabbitmq', 'neighbours', PRIVATE_SECRETS]) {
    rmSync(join(stateFolder, name), { recursive: true, force: true });
  }
  const kept = external.databaseUrl === null ? '' : ' (the database that DATABASE_URL names is not touched)';
  progress.line(`✔ Data of this checkout thrown away${kept}`);
}

function build({ workspace, supervisor, progress }: StartContext): Promise<void> {
  return progress.step('Services and neighbours built', () =>
    supervisor.run({
      name: 'build',
      stage: SERVICE_STAGE,
      command: process.execPath,
      args: ['tools/build/bundle.ts', ...PROJECT_ROOTS],
      env: process.env,
      cwd: workspace,
      graceMs: 0,
    }),
  );
}

async function prepareDatabases(context: StartContext, settings: PlatformSettings): Promise<void> {
  await context.progress.step('Databases migrated', () =>
    Promise.all(
      SERVICES.map((service) =>
        runBundle(context, `migrate-${service.name}`, service.migrate, ownerEnvironment(service, settings)),
      ),
    ),
  );
  await context.progress.step('Development identities loaded', () =>
    runBundle(context, 'load-development-identities', LOAD_IDENTITIES, ownerEnvironment(AUTH, settings)),
  );
}

function startProgram(
  { workspace, supervisor, progress, args }: StartContext,
  program: Deployable,
  stage: number,
  variables: Variables,
): Promise<void> {
  return progress.step(`${program.name} on port ${args.ports[program.port]}`, async () => {
    const child = await supervisor.spawn({
      name: program.name,
      stage,
      command: process.execPath,
      args: ['--enable-source-maps', program.bundle],
      env: { ...inheritedEnvironment(), ...variables },
      cwd: workspace,
      graceMs: GRACE_MS,
    });
    const url = `${localUrl(args.ports[program.port])}/health/ready`;
    await waitUntilReady(child, answersOk(url), READY_TIMEOUT_MS);
  });
}

function runBundle(context: StartContext, name: string, bundle: string, variables: Variables): Promise<void> {
  return context.supervisor.run({
    name,
    stage: SERVICE_STAGE,
    command: process.execPath,
    args: ['--enable-source-maps', bundle],
    env: { ...inheritedEnvironment(), ...variables },
    cwd: context.workspace,
    graceMs: GRACE_MS,
  });
}

/** The user's environment, so that LOG_LEVEL=debug npm start works, without what npm put there. */
export function inheritedEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^npm_|^INIT_CWD$|^RABBITMQ_URL$|^(MIGRATION_)?DATABASE_URL$/i.test(name),
    ),
  );
}
