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
  /** The first of these that works is used. */
  readonly engines: readonly EngineName[];
  /**
   * The base image of every image; null: the Dockerfile's, or one made here where no registry is reachable.
   */
  readonly base: string | null;
  /** Leaves out what takes longest. */
  readonly isShort: boolean;
}

const DESCRIPTION =
  'Builds every image, starts the containers of docker/compose.yaml and walks the tour on them, then plays the overlays of k8s/: ' +
  'first installation, two replicas of each service, a rolling replacement under load, after which everything that callers ' +
  'were told is compared with databases, queues and the neighbours’ ledgers. Removes what it started. Ends with 1 when ' +
  'anything is not as documented, and when containers cannot run here.';

/** @throws {ArgumentsError} on an unknown flag or an impossible value */
export function parseShipArguments(args: readonly string[]): ShipArguments {
  const { engine, base, short } = commandLine('npm run ship', '[-- flags]', DESCRIPTION)
    .option('--engine <podman,docker>', 'tries these, in this order', someOf(ENGINE_NAMES), [...ENGINE_NAMES])
    .option(
      '--base <image>',
      'the base image (the Dockerfile’s; one made from Debian packages where no registry answers)',
    )
    .option('--short', 'leaves out the overlay for one machine')
    .parse(args, { from: 'user' })
    .opts<{ engine: EngineName[]; base?: string; short?: true }>();
  return { engines: engine, base: base ?? null, isShort: short === true };
}

/** One line of the report: passes with what was seen, or fails with what it throws. */
export interface Step {
  readonly name: string;
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

/** The first image makes the layers that all share; the others are built beside each other. */
export function buildSteps(context: ShipContext): Step[] {
  const { engine, base, servers, measured } = context;
  const options = { workspace: WORKSPACE, base, tag: PRESENT, folder: servers.folder };
  const builds = new Map<string, Promise<void>>();
  const begin = (name: string): void => {
    const build = buildImage(engine, name, options);
    // The image's own step tells of a failure; until then it is not unhandled.
    build.catch(() => undefined);
    builds.set(name, build);
  };
  return IMAGE_NAMES.map((name, index) => ({
    name: `image ${name}`,
    run: async () => {
      if (index === 0) begin(name);
      if (index === 1) IMAGE_NAMES.slice(1).forEach(begin);
      // Nothing goes on behind a failure.
      await Promise.allSettled(builds.values());
      await builds.get(name);
      const { bytes, user } = await inspectImage(engine, imageOf(name, PRESENT));
      if (!/^[1-9]\d*:[1-9]\d*$/.test(user))
        throw new FriendlyError(`its user is ${user}, and not one by number that is not root`);
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
        const taken: number[] = [];
        for (const port of compose.ports) if (!(await isPortFree(port))) taken.push(port);
        if (taken.length > 0)
          throw new FriendlyError(`Something else listens on ${taken.join(', ')}. Is \`npm start\` running?`);
        const absent = await findAbsent(context);
        await servers.stage('', compose.variables['SERVICE_DATABASE_PASSWORD'] ?? '');
        await compose.up(PRESENT, absent, report);
        const missing = [...absent].map(
          ([name, address]) => `${name} ${address === null ? 'not run' : 'played by the workspace’s own'}`,
        );
        return missing.length === 0 ? 'all of them' : `without a registry: ${missing.join(', ')}`;
      },
    },
    { name: 'compose: the tour', run: walkTour },
    {
      name: 'compose: ends in order',
      run: async () => {
        await compose.down();
        return 'exit code 0 of each';
      },
    },
  ];
}

/** Looks at the logs of all containers that have ended. */
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
 * Services of the compose file whose images are nowhere to be had, and the address of what stands in for
 * them; null: nothing does.
 */
async function findAbsent({ engine, compose, report }: ShipContext): Promise<Map<string, string | null>> {
  const absent = new Map<string, string | null>();
  for (const [name, image] of compose.foreignImages) {
    if (await engine.hasImage(image)) continue;
    const isOurs = ['postgres', 'rabbitmq'].includes(name);
    report(
      `${image} cannot be fetched: ${isOurs ? 'the workspace’s own takes its place' : `${name} is not run`}`,
    );
    absent.set(name, isOurs ? engine.address(1) : null);
  }
  return absent;
}

/** Not synchronously: the way to PostgreSQL and RabbitMQ leads through this process. */
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
