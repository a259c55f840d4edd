import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOTS } from '#platform/programs.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { type Check, findingLines } from '#verification/audit/check.ts';
import { breakCopy, copyBuild } from './break.ts';
import { nameFindings, scenarioOf } from './groups.ts';
import type { Mutant } from './mutant.ts';
import { chaosFlags, describeScenario, type Scenario } from './scenario.ts';

/** What became of a run against a mistake. */
export interface MutantResult {
  readonly name: string;
  /** The line that names its effect; null: it was not noticed. */
  readonly finding: string | null;
  readonly seconds: number;
  /** How many other mistakes were in the copy. */
  readonly others: number;
}

const CHAOS = join(import.meta.dirname, '../scenarios/chaos/main.ts');
const CLUSTER_ROUNDS = 3;
const SHOWN_CHARACTERS = 6_000;

/** False when it failed. */
export function buildOnce(): boolean {
  const args = ['tools/build/bundle.ts', ...PROJECT_ROOTS];
  return spawnSync(process.execPath, args, { cwd: WORKSPACE, stdio: 'inherit' }).status === 0;
}

/** Plants mistakes in one copy and has one run look for all of them. @throws {Error} when the product has no
 *  such code any more */
export function runMutants(mutants: readonly Mutant[]): MutantResult[] {
  return judge(mutants, runChaos(breakCopy(mutants), chaosFlags(scenarioOf(mutants))));
}

/** Plants a mistake and has a run on three machines look for it. @throws {Error} as `runMutants` */
export function runClustered(mutant: Mutant): MutantResult[] {
  const { scenario, clusterFaults = scenario.map(({ kind }) => kind).join(',') } = mutant;
  const flags = ['--cluster', '--faults', clusterFaults, '--rounds', String(CLUSTER_ROUNDS), '--seed', '1'];
  return judge([mutant], runChaos(breakCopy([mutant]), flags));
}

/** Whether a run of the build as it is finds nothing. */
export function runUnbroken(scenario: Scenario): boolean {
  const run = runChaos(copyBuild('unbroken'), chaosFlags(scenario));
  const isClean = run.status === 0;
  console.log(`${isClean ? '✔' : '✘'} nothing is broken, ${describeScenario(scenario)}, ${run.seconds} s`);
  if (!isClean) show(run);
  return isClean;
}

type Run = ReturnType<typeof runChaos>;

function judge(mutants: readonly Mutant[], run: Run): MutantResult[] {
  const { seconds } = run;
  const findings = nameFindings(mutants, run.findings);
  for (const [index, { name, claim }] of mutants.entries()) {
    const finding = findings[index] ?? null;
    console.log(
      finding === null
        ? `✘ ${name} (${claim}): not noticed in ${seconds} s, exit ${String(run.status)}`
        : `✔ ${name} (${claim}), ${seconds} s: ${finding.slice(0, 300)}`,
    );
  }
  if (findings.includes(null)) show(run);
  const others = mutants.length - 1;
  return mutants.map(({ name }, index) => ({ name, finding: findings[index] ?? null, seconds, others }));
}

/** Runs a copy of the build, which goes afterwards. */
function runChaos(dist: string, flags: readonly string[]) {
  const startedAtMs = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, [CHAOS, '--dist', dist, ...flags], {
    encoding: 'utf8',
  });
  rmSync(join(WORKSPACE, dist), { recursive: true });
  const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
  return { status, stdout, stderr, seconds, findings: status === 1 ? readFindings(stdout) : [] };
}

/** Every finding; what a run prints is only the first of each check. */
function readFindings(stdout: string): string[] {
  const [, file] = /^Everything: (.*)$/m.exec(stdout) ?? [];
  if (file === undefined) return [];
  const { checks } = JSON.parse(readFileSync(file, 'utf8')) as { checks: Check[] };
  rmSync(file);
  return checks.flatMap(findingLines);
}

function show({ stdout, stderr }: Run): void {
  console.log(stdout.slice(-SHOWN_CHARACTERS), stderr.slice(-SHOWN_CHARACTERS));
}
