import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOTS } from '#platform/programs.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { type Check, findingLines } from '#verification/audit/check.ts';
import { breakCopy, copyBuild } from './break.ts';
import { nameFindings, roundsOf } from './groups.ts';
import type { Mutant } from './mutant.ts';
import { chaosFlags, describeRounds, type Rounds } from './rounds.ts';

/** The result of a run with a mutant. */
export interface MutantResult {
  readonly name: string;
  /** The finding that reports the mutant's effect. Null: the mutant was not noticed. */
  readonly finding: string | null;
  readonly seconds: number;
  /** Number of other mutants in the copy. */
  readonly others: number;
}

const CHAOS = join(import.meta.dirname, '../scenarios/chaos/main.ts');
const CLUSTER_ROUNDS = 3;
const SHOWN_CHARACTERS = 6_000;

/** Builds all projects. Returns false if that failed. */
export function buildOnce(): boolean {
  const args = ['tools/build/bundle.ts', ...PROJECT_ROOTS];
  return spawnSync(process.execPath, args, { cwd: WORKSPACE, stdio: 'inherit' }).status === 0;
}

/**
 * Plants mutants in one copy and starts one run that must notice all of them.
 * @throws {Error} if the product no longer has the code to break
 */
export function runMutants(mutants: readonly Mutant[]): MutantResult[] {
  return judge(mutants, runChaos(breakCopy(mutants), chaosFlags(roundsOf(mutants))));
}

/**
 * Plants a mutant and starts a run on three machines that must notice it.
 * @throws {Error} like `runMutants`
 */
export function runClustered(mutant: Mutant): MutantResult[] {
  const { rounds, clusterFaults = rounds.map(({ kind }) => kind).join(',') } = mutant;
  const flags = ['--cluster', '--faults', clusterFaults, '--rounds', String(CLUSTER_ROUNDS), '--seed', '1'];
  return judge([mutant], runChaos(breakCopy([mutant]), flags));
}

/** Runs the unchanged build. Returns true if there were no findings. */
export function runUnbroken(rounds: Rounds): boolean {
  const run = runChaos(copyBuild('unbroken'), chaosFlags(rounds));
  const isClean = run.status === 0;
  console.log(`${isClean ? '✔' : '✘'} unchanged build, ${describeRounds(rounds)}, ${run.seconds} s`);
  if (!isClean) show(run);
  return isClean;
}

type Run = ReturnType<typeof runChaos>;

function judge(mutants: readonly Mutant[], run: Run): MutantResult[] {
  const { seconds } = run;
  const findings = nameFindings(mutants, run.findings);
  for (const [index, { name, promise }] of mutants.entries()) {
    const finding = findings[index] ?? null;
    console.log(
      finding === null
        ? `✘ ${name} (${promise}): not noticed in ${seconds} s, exit ${String(run.status)}`
        : `✔ ${name} (${promise}), ${seconds} s: ${finding.slice(0, 300)}`,
    );
  }
  if (findings.includes(null)) show(run);
  const others = mutants.length - 1;
  return mutants.map(({ name }, index) => ({ name, finding: findings[index] ?? null, seconds, others }));
}

/** Runs chaos on a copy of the build, then deletes the copy. */
function runChaos(dist: string, flags: readonly string[]) {
  const startedAtMs = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, [CHAOS, '--dist', dist, ...flags], {
    encoding: 'utf8',
  });
  rmSync(join(WORKSPACE, dist), { recursive: true });
  const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
  return { status, stdout, stderr, seconds, findings: status === 1 ? readFindings(stdout) : [] };
}

/** Reads all findings from the result file. A run prints only the first 20 of each check. */
function readFindings(stdout: string): string[] {
  const [, file] = /^All results: (.*)$/m.exec(stdout) ?? [];
  if (file === undefined) return [];
  const { checks } = JSON.parse(readFileSync(file, 'utf8')) as { checks: Check[] };
  rmSync(file);
  return checks.flatMap(findingLines);
}

function show({ stdout, stderr }: Run): void {
  console.log(stdout.slice(-SHOWN_CHARACTERS), stderr.slice(-SHOWN_CHARACTERS));
}
