/**
 * Shows that a chaos run notices what it is for: builds with one deliberate mistake each, made by patching a copy of the bundles, and a
 * short run against each that has to fail.
 *
 * Usage: node tools/chaos/mutants.ts [--cluster] [<name> …]
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOTS } from '#platform/programs.ts';
import { WORKSPACE } from '#platform/state-folder.ts';

interface Mutant {
  readonly name: string;
  readonly bundle: string;
  readonly original: string;
  readonly mistake: string;
  /** Faults that bring it to light. */
  readonly faults: string;
  /** Those of three machines; the same unless given. */
  readonly clusterFaults?: string;
  /** Part of a finding that names the mistake's effect. */
  readonly caughtBy: RegExp;
}

const TASK = 'apps/task-service/code/main.js';

const MUTANTS: readonly Mutant[] = [
  {
    name: 'grace-retry-removed',
    bundle: 'apps/auth-service/code/main.js',
    original: 'action: "repeat-successor"\n',
    mistake: 'action: "reused"\n',
    faults: 'kill-replica',
    caughtBy: /a session was ended wrongly/,
  },
  {
    name: 'no-inbox',
    bundle: TASK,
    original: 'return applied?.response ?? null;',
    mistake: '',
    faults: 'kill-replica',
    caughtBy: /took effect \d+ times/,
  },
  {
    name: 'no-retry-on-40001',
    bundle: 'apps/settings-service/code/main.js',
    original: 'if (!isSerializationFailure(error)) throw error;',
    mistake: 'throw error;',
    faults: 'kill-replica',
    caughtBy: /PUT setting got 500/,
  },
  {
    name: 'acknowledge-before-commit',
    bundle: TASK,
    original: 'const settlement = await this.options.handle(message);',
    mistake: 'const settlement = "ack"; void this.options.handle(message);',
    faults: 'kill-starved-replica',
    caughtBy: /lost: /,
  },
  {
    name: 'publish-before-commit',
    bundle: TASK,
    original: 'const deadlineMs = HTTP_STORE_DEADLINE_MS;',
    mistake:
      'const deadlineMs = HTTP_STORE_DEADLINE_MS; const { sent } = await this.relay.relayPass.publish(messages); if (sent.length < messages.length) throw new Error("not published");',
    faults: 'database-kill,broker-kill',
    clusterFaults: 'postmaster-kill,broker-node-kill',
    caughtBy: /did not happen|has \d+ events|replicas acknowledged a schedule/,
  },
  {
    name: 'classic-reply-queue',
    bundle: TASK,
    original: 'const options = quorumQueue(UNLIMITED_DELIVERIES, {',
    mistake: 'const options = ((more) => ({ durable: true, arguments: more }))({',
    faults: 'broker-kill',
    clusterFaults: 'broker-node-kill',
    caughtBy: /replies\.\S+ is a classic queue/,
  },
];

/** So that a fault of one replica hits each service once. */
const ROUNDS = '3';
const SEED = '1';

function main(): void {
  const isClustered = process.argv.includes('--cluster');
  const names = process.argv.slice(2).filter((argument) => argument !== '--cluster');
  process.exitCode = 1;
  const build = ['tools/build/bundle.ts', ...PROJECT_ROOTS];
  if (spawnSync(process.execPath, build, { cwd: WORKSPACE, stdio: 'inherit' }).status !== 0) return;
  const chosen = MUTANTS.filter(({ name }) => names.length === 0 || names.includes(name));
  const survivors = chosen.filter((mutant) => !isCaught(mutant, isClustered));
  console.log(`\n${chosen.length - survivors.length} of ${chosen.length} broken builds were noticed`);
  process.exitCode = survivors.length === 0 && chosen.length > 0 ? 0 : 1;
}

function isCaught(mutant: Mutant, isClustered: boolean): boolean {
  const dist = join('dist/mutants', mutant.name);
  breakCopy(mutant, join(WORKSPACE, dist));
  const faults = isClustered
    ? ['--cluster', '--faults', mutant.clusterFaults ?? mutant.faults]
    : ['--faults', mutant.faults];
  const flags = ['--dist', dist, ...faults, '--rounds', ROUNDS, '--seed', SEED];
  const run = spawnSync(process.execPath, [join(import.meta.dirname, 'main.ts'), ...flags], {
    encoding: 'utf8',
  });
  const finding = run.stdout.split('\n').find((line) => line.startsWith('✘') && mutant.caughtBy.test(line));
  const isNoticed = run.status === 1 && finding !== undefined;
  console.log(
    `${isNoticed ? '✔' : '✘'} ${mutant.name}: ${finding ?? `not noticed (exit ${String(run.status)})`}`,
  );
  if (!isNoticed) console.log(run.stdout.slice(-4_000), run.stderr.slice(-2_000));
  return isNoticed;
}

/** @throws {Error} when the code to break is not there exactly once: the build has changed */
function breakCopy({ bundle, original, mistake, name }: Mutant, target: string): void {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const part of ['apps', 'tools'])
    cpSync(join(WORKSPACE, 'dist', part), join(target, part), { recursive: true });
  const file = join(target, bundle);
  const parts = readFileSync(file, 'utf8').split(original);
  if (parts.length !== 2)
    throw new Error(`${name}: the code to break occurs in ${bundle} ${parts.length - 1} times`);
  writeFileSync(file, parts.join(mistake));
}

main();
