/** `npm run chaos`: breaks a platform of its own under load and compares what was acknowledged with what is there. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError } from '#platform/friendly-error.ts';
import { build } from './build.ts';
import { ArgumentsError, parseChaosArguments, USAGE, type ChaosArguments } from './arguments.ts';
import { Cluster } from './cluster/cluster.ts';
import { isClean, renderReport, saveResult } from './report.ts';
import { runChaos } from './run.ts';

const WORKSPACE = join(import.meta.dirname, '../..');
const RESULTS = join(WORKSPACE, 'test-results/chaos');

async function main(): Promise<void> {
  // Whatever ends this process before the audit must not look like success.
  process.exitCode = 2;
  const args = parseChaosArguments(process.argv.slice(2), Math.floor(Math.random() * 1_000_000));
  if (args.help) {
    console.log(USAGE);
    process.exitCode = 0;
    return;
  }
  if (args.dist === 'dist') build(WORKSPACE);
  if (!existsSync(join(WORKSPACE, args.dist, 'apps/task-service/main.js')))
    throw new FriendlyError(`${args.dist} holds no build.`);
  const startedAtMs = performance.now();
  const report = (line: string): void =>
    console.log(`${((performance.now() - startedAtMs) / 1000).toFixed(1).padStart(7)} s  ${line}`);
  report(`seed ${args.seed}, ${args.rounds} rounds, build in ${args.dist}`);
  const cluster = await Cluster.open({ workspace: WORKSPACE, dist: args.dist, report });
  stopOnSignals(cluster);
  try {
    process.exitCode = await runAndReport(cluster, args, report);
  } finally {
    await cluster.stop();
  }
}

async function runAndReport(
  cluster: Cluster,
  args: ChaosArguments,
  report: (line: string) => void,
): Promise<number> {
  const result = await runChaos(cluster, { ...args, workspace: WORKSPACE, report });
  console.log(renderReport(result));
  console.log(`Everything: ${saveResult(RESULTS, args.dist, result)}`);
  return isClean(result) ? 0 : 1;
}

function stopOnSignals(cluster: Cluster): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => void cluster.stop().finally(() => process.exit(130)));
}

main().then(
  () => process.exit(),
  (error: unknown) => {
    const isForUser = error instanceof FriendlyError || error instanceof ArgumentsError;
    console.error(isForUser ? `✘ ${error.message}` : error);
    process.exit(2);
  },
);
