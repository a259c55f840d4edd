/**
 * `nx serve <service>`: takes the place of one service of the platform that runs from this checkout. Builds, migrates and runs it with
 * the platform's own environment and its log in this terminal, again after every change of its sources. On Ctrl-C the platform starts
 * its own again. Flags that begin with `--inspect` go to Node.
 */
import { join } from 'node:path';
import { FriendlyError } from '#platform/friendly-error.ts';
import { findRunRecord, isSupervised } from '#platform/run-record.ts';
import { openStateFolder } from '#platform/state-folder.ts';
import { stopProcesses } from '#platform/stop-processes.ts';
import { Supervisor, type SupervisedProcess } from '#platform/supervisor.ts';
import { SERVICES, type Service } from '#platform/programs.ts';
import { withoutOwner, type Variables } from '#platform/environments.ts';
import { followLogs } from './follow-logs.ts';
import { inheritedEnvironment } from './platform.ts';
import { readServiceEnvironment } from '#platform/service-environment.ts';
import { isServed, servingRecord } from './serving.ts';
import { SourceChanges } from './source-changes.ts';

const WORKSPACE = join(import.meta.dirname, '../..');
/** A service ends its own shutdown after 25 s (SHUTDOWN_TIMEOUT_MS). */
const GRACE_MS = 30_000;
const PLATFORM_POLL_MS = 500;

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

  /** Builds, and puts the new build in the place of the old; one that cannot be built leaves the old running. */
  async renew(): Promise<void> {
    try {
      await this.#run('build', ['tools/build/bundle.ts', `apps/${this.service.name}`], {});
      await this.#run('migrate', ['--enable-source-maps', this.service.migrate], this.environment);
    } catch (error) {
      if (!(error instanceof FriendlyError) || this.supervisor.isStopping) throw error;
      console.error(`✘ ${error.message}\n▸ Waiting for a change …`);
      return;
    }
    await this.#stop();
    const args = [...this.nodeFlags, '--enable-source-maps', this.service.bundle];
    const child = await this.supervisor.spawn(
      this.#spec(this.service.name, args, withoutOwner(this.environment)),
    );
    this.#child = child;
    console.log(`▸ ${this.service.name} runs from a fresh build; Ctrl-C gives its place back`);
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

  #run(name: string, args: readonly string[], variables: Variables): Promise<void> {
    return this.supervisor.run(this.#spec(name, args, variables));
  }

  #spec(name: string, args: readonly string[], variables: Variables) {
    const env = { ...inheritedEnvironment(), ...variables };
    return { name, stage: 0, command: process.execPath, args, env, cwd: WORKSPACE, graceMs: GRACE_MS };
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
  // From here on the platform takes its own one's end for what it is.
  const platform = findRunRecord(join(stateFolder, 'run.json'));
  await stopProcesses(platform?.processes.filter(({ name }) => name === service.name) ?? []);
  const serving = new Serving(service, supervisor, environment, nodeFlags);
  const changes = new SourceChanges([join(WORKSPACE, 'apps', service.name, 'src'), join(WORKSPACE, 'libs')]);
  for (;;) {
    await serving.renew();
    await changes.next();
  }
}

/** Ends on Ctrl-C, and with the platform. */
function endWith(supervisor: Supervisor, isPlatformUp: () => boolean): void {
  const end = (): void => void supervisor.stop().then(() => process.exit(0));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  setInterval(() => {
    if (!isPlatformUp()) end();
  }, PLATFORM_POLL_MS);
}

const [name, ...flags] = process.argv.slice(2);
const service = SERVICES.find((each) => each.name === name);
if (service === undefined) {
  console.error(
    `Usage: nx serve <service> [--inspect…] with a service of: ${SERVICES.map((each) => each.name).join(', ')}`,
  );
  process.exit(2);
}
serve(
  service,
  flags.filter((flag) => flag.startsWith('--inspect')),
).catch((error: unknown) => {
  console.error(error instanceof FriendlyError ? `✘ ${error.message}` : error);
  process.exit(1);
});
