/** `npm run ship`: builds the images and runs them like compose and Kubernetes. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { onEndSignal, runMain, timedReport } from '#platform/command-line.ts';
import { FriendlyError } from '#platform/errors.ts';
import { makeTemporaryFolder } from '#platform/private-servers.ts';
import { SERVICES } from '#platform/programs.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import {
  buildSteps,
  composeSteps,
  logSteps,
  parseShipArguments,
  type ShipArguments,
  type ShipContext,
  type Step,
} from './steps.ts';
import { Compose } from './compose.ts';
import { Engine } from './engine.ts';
import { findBaseImage, removeImages } from './images.ts';
import { localSteps, productionSteps } from './overlay-steps.ts';
import { type Measured, type Outcome, renderMeasured, saveOutcomes } from './report.ts';
import { Servers } from './servers.ts';

const FOLDER = join(WORKSPACE, 'docker');
/** Exit code of a run that ended before its report. It must not look like success. */
const NOT_FINISHED = 2;
/** Mount point of cgroup v2 on systems that mount both v1 and v2. crun does not support such systems. */
const SECOND_CGROUPS = '/sys/fs/cgroup/unified';

async function main(): Promise<void> {
  process.exitCode = NOT_FINISHED;
  const args = parseShipArguments(process.argv.slice(2));
  if (
    process.getuid?.() === 0 &&
    readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${SECOND_CGROUPS} `)
  ) {
    process.exitCode = await runInOwnMounts();
    return;
  }
  const report = timedReport();
  const measured: Measured[] = SERVICES.map(({ name }) => ({
    name,
    imageBytes: 0,
    user: '',
    readyMs: [],
    idle: { bytes: 0, processors: 0 },
    loaded: { bytes: 0, processors: 0 },
  }));
  const outcomes = await ship(args, measured, report).catch((error: unknown): Outcome[] => {
    if (!(error instanceof FriendlyError)) throw error;
    return [{ name: 'containers', durationMs: 0, detail: '', problem: error.message }];
  });
  saveOutcomes(outcomes, measured);
  for (const { name, problem } of outcomes) if (problem !== null) console.error(`\n✘ ${name}: ${problem}`);
  const failed = outcomes.filter(({ problem }) => problem !== null).length;
  console.log(`\n${renderMeasured(measured)}\n\n${outcomes.length - failed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}

/** Runs this program again in a mount namespace with cgroup v1 only. Returns its exit code. */
function runInOwnMounts(): Promise<number> {
  const script = `umount ${SECOND_CGROUPS} && exec "$0" "$@"`;
  const child = spawn(
    'unshare',
    ['--mount', 'sh', '-c', script, process.execPath, ...process.argv.slice(1)],
    { stdio: 'inherit' },
  );
  onEndSignal((signal) => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? NOT_FINISHED));
  });
}

/** Runs all steps, one after the other. After a failed step the others count as failed too. */
async function ship(
  args: ShipArguments,
  measured: readonly Measured[],
  report: (line: string) => void,
): Promise<Outcome[]> {
  const folder = makeTemporaryFolder(null);
  const engine = await Engine.find(args.engines, folder);
  const closing: (() => Promise<void> | void)[] = [
    () => rmSync(folder, { recursive: true }),
    () => removeImages(engine),
    () => engine.close(),
  ];
  const close = async (): Promise<void> => {
    for (const end of closing.splice(0).reverse()) await end();
  };
  onEndSignal(() => void close().finally(() => process.exit(NOT_FINISHED)));
  try {
    report(`using ${engine.name}`);
    const base = await findBaseImage(engine, {
      wanted: args.base,
      dockerfile: join(FOLDER, 'Dockerfile'),
      report,
    });
    await engine.open(base);
    const compose = new Compose(engine, join(FOLDER, 'compose.yaml'), join(FOLDER, 'development.env'));
    const servers = await Servers.open(engine.address(1), compose.variables['RABBITMQ_PASSWORD'] ?? '');
    closing.push(() => servers.close());
    const context: ShipContext = { engine, servers, compose, base, args, measured, report };
    const steps = [
      ...buildSteps(context),
      ...composeSteps(context),
      ...productionSteps(context),
      ...(args.isShort ? [] : localSteps(context)),
      ...logSteps(context),
    ];
    return await runSteps(steps, report);
  } finally {
    await close();
  }
}

async function runSteps(steps: readonly Step[], report: (line: string) => void): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  let isBroken = false;
  for (const { name, run } of steps) {
    const startedAtMs = performance.now();
    const result: Pick<Outcome, 'detail' | 'problem'> = isBroken
      ? { detail: '', problem: 'not run, because an earlier step failed' }
      : await run().then(
          (detail) => ({ detail, problem: null }),
          (error: unknown) => ({
            detail: '',
            problem: error instanceof FriendlyError ? error.message : String((error as Error).stack),
          }),
        );
    isBroken ||= result.problem !== null;
    outcomes.push({ name, durationMs: performance.now() - startedAtMs, ...result });
    if (result.problem === null) report(`✔ ${name}: ${result.detail}`);
    else report(`✘ ${name}`);
  }
  return outcomes;
}

runMain(main, NOT_FINISHED);
