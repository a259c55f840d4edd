/**
 * `npm test`: format, lint, types, unused code, unit tests, build, integration and end-to-end tests, and the
 * number of all tests at the end.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { onEndSignal, runMain } from '#platform/command-line.ts';
import { startTestServers, type TestServers } from '#platform/private-servers.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import {
  countByProject,
  countStep,
  countTests,
  listFailures,
  summarise,
  type JestReport,
  type StepResult,
} from './results.ts';
import { chooseSteps, type Step } from './steps.ts';

const RESULTS = join(WORKSPACE, 'test-results');
const LONG_STEPS_AT_ONCE = 2;
// No daemon, which would stay behind; no terminal interface, because the output is also read from a file.
const NX_ENVIRONMENT = { NX_DAEMON: 'false', NX_TUI: 'false', NX_NO_CLOUD: 'true' };

type Servers = TestServers | Error;

async function main(): Promise<void> {
  // An end before the count is printed must not look like success.
  process.exitCode = 2;
  const steps = chooseSteps(process.argv.slice(2));
  // A run that has time for the long steps also has time for the full size of the other tests.
  if (steps.some(({ isLong }) => isLong)) process.env['TEST_FULL_SIZE'] = 'true';
  rmSync(RESULTS, { recursive: true, force: true });
  mkdirSync(RESULTS);
  // The servers start while the first steps run. The first step that needs them reports their failure.
  const servers = steps.some(({ needsServers }) => needsServers) ? startServers() : null;
  const stop = async (): Promise<void> => {
    const started = await servers;
    if (started && !(started instanceof Error)) await started.stop();
  };
  onEndSignal(() => void stop().then(() => process.exit(1)));
  const results = await runAll(steps, servers);
  await stop();
  console.log(summarise(results));
  process.exit(results.some(({ count }) => count.failed > 0) ? 1 : 0);
}

function startServers(): Promise<Servers> {
  return startTestServers().catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
}

/**
 * Runs the static checks, which use one processor each, beside the build and the unit tests. Tests that
 * measure time start when these are done. The long steps mostly wait, so several of them run at a time, and
 * the first one beside the end-to-end tests. Returns the results in the order of the steps.
 */
async function runAll(steps: readonly Step[], servers: Promise<Servers> | null): Promise<StepResult[]> {
  const results = new Map<Step, StepResult>();
  const runEach = async (chosen: Iterable<Step>): Promise<void> => {
    for (const step of chosen) results.set(step, await runStep(step, servers));
  };
  const inOrder = steps.filter(({ isStatic, isLong }) => !isStatic && isLong !== true);
  await Promise.all([
    runEach(steps.filter(({ isStatic }) => isStatic)),
    runEach(inOrder.filter(({ needsServers }) => !needsServers)),
  ]);
  const onServers = inOrder.filter(({ needsServers }) => needsServers);
  await runEach(onServers.filter(({ isWaiting }) => isWaiting !== true));
  // All runners share one iterator: each takes the next step when it has finished its last.
  const waiting = steps.filter(({ isLong }) => isLong).values();
  const onOtherRunners = async (): Promise<void> => {
    await runEach(onServers.filter(({ isWaiting }) => isWaiting === true));
    await Promise.all(Array.from({ length: LONG_STEPS_AT_ONCE - 1 }, () => runEach(waiting)));
  };
  await Promise.all([runEach(waiting), onOtherRunners()]);
  return steps.map((step) => results.get(step) as StepResult);
}

async function runStep(step: Step, servers: Promise<Servers> | null): Promise<StepResult> {
  if (!runsBesideOthers(step)) console.log(heading(step));
  const startedAtMs = performance.now();
  const started = step.needsServers ? await servers : null;
  if (started instanceof Error)
    console.error(`✘ No PostgreSQL and RabbitMQ to test with: ${started.message}`);
  const succeeded = !(started instanceof Error) && (await run(step, started?.environment ?? {}));
  const durationMs = performance.now() - startedAtMs;
  return { name: step.name, ...judge(step, succeeded), durationMs };
}

function heading({ name, command }: Step): string {
  return `\n▸ ${name}: ${command.join(' ')}`;
}

function runsBesideOthers({ isStatic, isLong }: Step): boolean {
  return isStatic || isLong === true;
}

/** Runs a step. The output of a step beside others is printed when it is done, so that outputs do not mix. */
function run(step: Step, environment: Readonly<Record<string, string>>): Promise<boolean> {
  const [program, ...args] = step.command;
  const output = runsBesideOthers(step) ? 'pipe' : 'inherit';
  const child = spawn(join(WORKSPACE, 'node_modules/.bin', program), args, {
    cwd: WORKSPACE,
    env: { ...process.env, ...NX_ENVIRONMENT, ...environment },
    stdio: ['ignore', output, output],
  });
  const written: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => written.push(chunk));
  return new Promise((resolve) => {
    child.once('error', (error) => {
      console.error(error.message);
      resolve(false);
    });
    child.once('close', (code) => {
      if (runsBesideOthers(step))
        console.log(`${heading(step)}\n${Buffer.concat(written).toString()}`.trimEnd());
      resolve(code === 0);
    });
  });
}

function judge(step: Step, succeeded: boolean): Pick<StepResult, 'count' | 'failures'> {
  if (step.tests === null) return { count: countStep(succeeded), failures: [] };
  const reports = readReports(step.tests);
  return {
    count: countTests(succeeded, reports),
    failures: reports.flatMap((report) => (report === null ? [] : listFailures(report, WORKSPACE))),
  };
}

function readReports({ target, report }: NonNullable<Step['tests']>): (JestReport | null)[] {
  if (target !== null)
    return projectsWith(target).map((project) => readReport(project, `${project}.${report}`));
  const ofAll = readReport('all projects', report);
  if (ofAll !== null) console.log(countByProject(ofAll, WORKSPACE));
  return [ofAll];
}

function projectsWith(target: string): string[] {
  const nx = join(WORKSPACE, 'node_modules/.bin/nx');
  const text = execFileSync(nx, ['show', 'projects', `--with-target=${target}`, '--json'], {
    cwd: WORKSPACE,
    env: { ...process.env, ...NX_ENVIRONMENT },
    encoding: 'utf8',
  });
  return JSON.parse(text) as string[];
}

function readReport(project: string, name: string): JestReport | null {
  const file = join(RESULTS, `${name}.json`);
  if (!existsSync(file)) {
    console.error(`✘ ${project}: no results (${file})`);
    return null;
  }
  return JSON.parse(readFileSync(file, 'utf8')) as JestReport;
}

runMain(main, 2);
