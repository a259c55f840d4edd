/** `npm run chaos`: breaks a platform of its own under load and compares what was acknowledged with what is there. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { onEndSignal, runMain, timedReport } from '#platform/command-line.ts';
import { FriendlyError } from '#platform/errors.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { parseChaosArguments, planFaults, planUpgrade } from './plan.ts';
import { Cluster } from './cluster.ts';
import { isInWorld, runInWorld } from './engines/world.ts';
import { buildRelease } from './release.ts';
import { isClean, renderReport, saveResult } from './report.ts';
import { runChaos } from './run.ts';

const RESULTS = join(WORKSPACE, 'test-results/chaos');
/** Whatever ends this process before the audit must not look like success. */
const NOT_AUDITED = 2;

async function main(): Promise<void> {
  process.exitCode = NOT_AUDITED;
  const args = parseChaosArguments(process.argv.slice(2), Math.floor(Math.random() * 1_000_000));
  if (args.dist !== 'dist' && !existsSync(join(WORKSPACE, args.dist, 'apps/task-service/main.js')))
    throw new FriendlyError(`${args.dist} holds no build.`);
  const report = timedReport();
  const { upgradeFrom, cluster: isClustered = false, pooler: hasPooler = false } = args;
  if (isClustered && !isInWorld()) process.exit(await runInWorld(report));
  const [plan, flags] =
    upgradeFrom === undefined
      ? [
          planFaults(args.seed, args.rounds, args.faults),
          `${isClustered ? '--cluster ' : ''}${hasPooler ? '--pooler ' : ''}--rounds ${args.rounds}`,
        ]
      : [planUpgrade(args.seed), `--upgrade-from ${upgradeFrom}`];
  report(`seed ${args.seed}, ${plan.length} rounds, build in ${args.dist}`);
  const release = upgradeFrom === undefined ? null : buildRelease(upgradeFrom, report);
  const cluster = await Cluster.open({ dist: args.dist, release, isClustered, hasPooler }, report);
  onEndSignal(() => void cluster.stop().finally(() => process.exit(130)));
  try {
    const result = await runChaos(cluster, {
      ...args,
      plan,
      flags,
      prometheus: args.prometheus ?? false,
      report,
    });
    console.log(renderReport(result));
    console.log(`Everything: ${saveResult(RESULTS, args.dist, result)}`);
    process.exitCode = isClean(result) ? 0 : 1;
  } finally {
    await cluster.stop();
  }
  process.exit();
}

runMain(main, NOT_AUDITED);
