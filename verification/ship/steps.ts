import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { commandLine, someOf } from '#platform/command-line.ts';
import { addressVariables } from '#platform/environments.ts';
import { FriendlyError } from '#platform/errors.ts';
import { DEFAULT_PORTS, isPortFree } from '#platform/ports.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { auditLoggedDefects } from '#verification/audit/responses-and-logs.ts';
import type { Compose } from './compose.ts';
import { type Engine, ENGINE_NAMES, type EngineName } from './engine.ts';
import { buildImage, countPackages, IMAGE_NAMES, imageOf, inspectImage, PRESENT } from './images.ts';
import type { Measured } from './report.ts';
import type { Servers } from './servers.ts';

export interface ShipArguments {
  /** The first working engine is used. */
  readonly engines: readonly EngineName[];
  /** The base image. Null: that of the Dockerfile, or one created here if no registry is reachable. */
  readonly base: string | null;
  /** True: omits the rotation of keys and the overlay for one machine. */
  readonly isShort: boolean;
}

const DESCRIPTION =
  'Builds every image, starts the containers of docker/compose.yaml and walks the tour on them, then runs the overlays of k8s/: ' +
  'first installation, two replicas of each service, a rolling replacement under load. Then compares all acknowledgements with ' +
  'databases, queues and the neighbours’ ledgers. Removes everything that it started. Exits with 1 if anything is not as ' +
  'documented, or if containers cannot run here.';

/** Parses the command line. @throws {ArgumentsError} for an unknown flag or an invalid value */
export function parseShipArguments(args: readonly string[]): ShipArguments {
  const { engine, base, short } = commandLine('npm run ship', '[-- flags]', DESCRIPTION)
    .option('--engine <podman,docker>', 'engines to try, in this order', someOf(ENGINE_NAMES), [
      ...ENGINE_NAMES,
    ])
    .option(
      '--base <image>',
      'the base image (default: that of the Dockerfile, or one created from Debian packages if no registry is reachable)',
    )
    .option('--short', 'omits the rotation of keys and the overlay for one machine')
    .parse(args, { from: 'user' })
    .opts<{ engine: EngineName[]; base?: string; short?: true }>();
  return { engines: engine, base: base ?? null, isShort: short === true };
}

/** One step of the report. */
export interface Step {
  readonly name: string;
  /** Resolves to a description of the result. @throws if the step fails */
  readonly run: () => Promise<string>;
}

export interface ShipContext {
  readonly engine: Engine;
  readonly servers: Servers;
  readonly compose: Compose;
  readonly base: string;
  readonly args: ShipArguments;
  readonly measured: readonly Measured[];
  readonly report: (line: string) => void;
}

const run = promisify(execFile);
const TOUR_TIMEOUT_MS = 180_000;

/**
 * Builds the first image alone, because it creates the layers that all share, then the others concurrently.
 */
export function buildSteps(context: ShipContext): Step[] {
  const { engine, base, servers, measured } = context;
  const options = { workspace: WORKSPACE, base, tag: PRESENT, folder: servers.folder };
  const builds = new Map<string, Promise<void>>();
  const begin = (name: string): void => {
    const build = buildImage(engine, name, options);
    // The image's own step reports a rejection. This handler keeps it from being unhandled until then.
    build.catch(() => undefined);
    builds.set(name, build);
  };
  return IMAGE_NAMES.map((name, index) => ({
    name: `image ${name}`,
    run: async () => {
      if (index === 0) begin(name);
      if (index === 1) IMAGE_NAMES.slice(1).forEach(begin);
      // Wait for all builds, so that none continues after a failure.
      await Promise.allSettled(builds.values());
      await builds.get(name);
      const { bytes, user } = await inspectImage(engine, imageOf(name, PRESENT));
      if (!/^[1-9]\d*:[1-9]\d*$/.test(user))
        throw new FriendlyError(`its user is ${user}, not a numeric user other than root`);
      const found = measured.find((each) => each.name === name);
      if (found !== undefined) Object.assign(found, { imageBytes: bytes, user });
      const packages = await countPackages(engine, name);
      return `${(bytes / 1e6).toFixed(0)} MB, user ${user}, ${packages} packages in its bill of materials`;
    },
  }));
}

export function composeSteps(context: ShipContext): Step[] {
  const { servers, compose, report } = context;
  return [
    {
      name: 'compose: every container is healthy',
      run: async () => {
        const used: number[] = [];
        for (const port of compose.ports) if (!(await isPortFree(port))) used.push(port);
        if (used.length > 0)
          throw new FriendlyError(`Another process listens on ${used.join(', ')}. Is \`npm start\` running?`);
        const absent = await findAbsent(context);
        await servers.stage('', compose.variables['SERVICE_DATABASE_PASSWORD'] ?? '');
        await compose.up(PRESENT, absent, report);
        const missing = [...absent].map(
          ([name, address]) => `${name} ${address === null ? 'not run' : 'replaced by a private server'}`,
        );
        return missing.length === 0 ? 'all containers' : `without a registry: ${missing.join(', ')}`;
      },
    },
    { name: 'compose: the tour', run: walkTour },
    {
      name: 'compose: ends in order',
      run: async () => {
        await compose.down();
        return 'all exit with code 0';
      },
    },
  ];
}

/** Checks the logs of all ended containers. */
export function logSteps({ engine }: ShipContext): Step[] {
  return [
    {
      name: 'logs: no defect',
      run: () => {
        const { findings, audited } = auditLoggedDefects(engine.endedLogs);
        const [first] = findings;
        if (first === undefined) return Promise.resolve(`no line at level error among ${audited}`);
        return Promise.reject(new FriendlyError(`${findings.length} lines, the first: ${first}`));
      },
    },
  ];
}

/**
 * Finds compose services whose images cannot be fetched, with the address of a substitute. Null: there is
 * none, and the service is not started.
 */
async function findAbsent({ engine, compose, report }: ShipContext): Promise<Map<string, string | null>> {
  const absent = new Map<string, string | null>();
  for (const [name, image] of compose.foreignImages) {
    if (await engine.hasImage(image)) continue;
    const isOurs = ['postgres', 'rabbitmq'].includes(name);
    report(`${image} cannot be fetched: ${isOurs ? 'a private server replaces it' : `${name} is not run`}`);
    absent.set(name, isOurs ? engine.address(1) : null);
  }
  return absent;
}

/** Runs the tour. Not synchronously, because the proxies to PostgreSQL and RabbitMQ run in this process. */
async function walkTour(): Promise<string> {
  const env = { ...process.env, ...addressVariables(DEFAULT_PORTS), NO_COLOR: '1' };
  const tour = join(WORKSPACE, 'tools/tour/main.ts');
  const { stdout } = await run(process.execPath, [tour], { env, timeout: TOUR_TIMEOUT_MS }).catch(
    (cause: Error & { stdout?: string; stderr?: string }) => {
      throw new FriendlyError(`${cause.stdout?.slice(-1_500) ?? ''}${cause.stderr ?? ''}`, { cause });
    },
  );
  return stdout.trim().split('\n').at(-1) ?? '';
}
