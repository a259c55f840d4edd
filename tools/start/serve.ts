/**
 * `nx serve <service>`: replaces one service of the platform that runs from this checkout. Builds, migrates
 * and runs it with the platform's environment and its log in this terminal, and again after every change of
 * its sources. On Ctrl-C the platform starts its own process again. Flags that begin with `--inspect` are
 * passed to Node.
 */
import { watch } from 'node:fs';
import { join } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { commandLine, onEndSignal, runMain } from '#platform/command-line.ts';
import { withoutOwner } from '#platform/environments.ts';
import { FriendlyError } from '#platform/errors.ts';
import { nodeProcess, type Service, SERVICES } from '#platform/programs.ts';
import { findRunRecord, isSupervised, stopProcesses } from '#platform/run-record.ts';
import {
  openStateFolder,
  readServiceEnvironment,
  type Variables,
  WORKSPACE,
} from '#platform/state-folder.ts';
import { type SupervisedProcess, Supervisor } from '#platform/supervisor.ts';
import { bundleProcess, isServed, servingRecord } from './platform.ts';
import { followLogs } from './terminal.ts';

const PLATFORM_POLL_MS = 500;
/**
 * Time in ms without further changes after which a build starts: an editor writes several files, or one in
 * several steps.
 */
const QUIET_MS = 200;

class Serving {
  readonly service: Service;
  readonly supervisor: Supervisor;
  readonly environment: Variables;
  readonly nodeFlags: readonly string[];
  #child: SupervisedProcess | null = null;

  constructor(
    service: Service,
    supervisor: Supervisor,
    environment: Variables,
    nodeFlags: readonly string[],
  ) {
    this.service = service;
    this.supervisor = supervisor;
    this.environment = environment;
    this.nodeFlags = nodeFlags;
  }

  /**
   * Builds, migrates and replaces the running process. If building or migrating fails, the old process keeps
   * running.
   */
  async renew(): Promise<void> {
    try {
      const bundler = ['tools/build/bundle.ts', `apps/${this.service.name}`];
      await this.supervisor.run(nodeProcess('build', bundler, process.env));
      await this.supervisor.run(bundleProcess('migrate', this.service.migrate, this.environment));
    } catch (error) {
      if (!(error instanceof FriendlyError) || this.supervisor.isStopping) throw error;
      console.error(`✘ ${error.message}\n▸ Waiting for a change …`);
      return;
    }
    await this.#stop();
    const { name, bundle } = this.service;
    const child = await this.supervisor.spawn(
      bundleProcess(name, bundle, withoutOwner(this.environment), this.nodeFlags),
    );
    this.#child = child;
    console.log(`▸ ${this.service.name} runs from a fresh build; Ctrl-C returns it to the platform`);
    void child.ended.then((how) => {
      if (this.#child === child) console.error(`✘ ${this.service.name} ${how}\n▸ Waiting for a change …`);
    });
  }

  async #stop(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.hasEnded()) return;
    process.kill(child.pid, 'SIGTERM');
    await child.ended;
  }
}

async function serve(service: Service, nodeFlags: readonly string[]): Promise<void> {
  const stateFolder = openStateFolder(WORKSPACE);
  const environment = readServiceEnvironment(stateFolder, service.name);
  const isPlatformUp = (): boolean => {
    const record = findRunRecord(join(stateFolder, 'run.json'));
    return record !== null && isSupervised(record);
  };
  if (!isPlatformUp() || environment === null)
    throw new FriendlyError('No platform runs from this checkout. Start it with: npm start');
  if (isServed(stateFolder, service.name))
    throw new FriendlyError(`Another nx serve ${service.name} is running.`);
  const logFolder = join(stateFolder, 'logs', `serve-${service.name}`);
  const supervisor = await Supervisor.open({
    recordFile: servingRecord(stateFolder, service.name),
    logFolder,
  });
  followLogs(logFolder, (line) => console.log(line.replace(/^\[.*?\] /, '')));
  endWith(supervisor, isPlatformUp);
  // The serving record exists now, so the platform does not treat the end of its own process as a failure.
  const platform = findRunRecord(join(stateFolder, 'run.json'));
  await stopProcesses(platform?.processes.filter(({ name }) => name === service.name) ?? []);
  const serving = new Serving(service, supervisor, environment, nodeFlags);
  const changes = new SourceChanges([join(WORKSPACE, 'apps', service.name, 'src'), join(WORKSPACE, 'libs')]);
  for (;;) {
    await serving.renew();
    await changes.next();
  }
}

/** Ends this process on Ctrl-C, or when the platform ends. */
function endWith(supervisor: Supervisor, isPlatformUp: () => boolean): void {
  const end = (): void => void supervisor.stop().then(() => process.exit(0));
  onEndSignal(end);
  setInterval(() => {
    if (!isPlatformUp()) end();
  }, PLATFORM_POLL_MS);
}

/** Watches the sources in some folders, except specs. */
class SourceChanges {
  #changed = false;
  #notify: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(folders: readonly string[]) {
    for (const folder of folders) {
      watch(folder, { recursive: true, persistent: false }, (_event, file) => {
        if (file?.endsWith('.ts') && !file.endsWith('.spec.ts')) this.#note();
      });
    }
  }

  /** Resolves once a source has changed since the last call. */
  async next(): Promise<void> {
    if (!this.#changed) await new Promise<void>((resolve) => (this.#notify = resolve));
    this.#changed = false;
  }

  #note(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#changed = true;
      this.#notify();
    }, QUIET_MS);
  }
}

function parseService(name: string): Service {
  const found = SERVICES.find((service) => service.name === name);
  if (found === undefined)
    throw new InvalidArgumentError(
      `It must be one of: ${SERVICES.map((service) => service.name).join(', ')}.`,
    );
  return found;
}

runMain(() => {
  const description =
    'Serves one service of the platform that runs from this checkout, and rebuilds it after each change.';
  const command = commandLine('nx serve', '<service> [--inspect…]', description)
    .argument('<service>', 'its name', parseService)
    .allowUnknownOption()
    .allowExcessArguments()
    .parse();
  const [service] = command.processedArgs as [Service];
  return serve(
    service,
    command.args.filter((flag) => flag.startsWith('--inspect')),
  );
});
