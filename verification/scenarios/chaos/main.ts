/**
 * `npm run chaos`: injects faults into a platform of its own under load, then compares acknowledgements with
 * the stored and published data.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError } from '#platform/errors.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { chaos } from '../chaos.ts';
import { cluster } from '../cluster.ts';
import { runScenario } from '../runner.ts';
import type { Report } from '../scenario.ts';
import { upgrade } from '../upgrade.ts';
import { isInNamespaces, runInNamespaces } from './engines/namespaces.ts';
import type { RoundScenario } from './in-rounds.ts';
import { parseChaosArguments } from './plan.ts';

/**
 * Chooses the scenario by the command line. `--cluster` runs this program again inside its own namespaces.
 */
async function choose(report: Report): Promise<RoundScenario> {
  const args = parseChaosArguments(process.argv.slice(2), Math.floor(Math.random() * 1_000_000));
  if (args.dist !== 'dist' && !existsSync(join(WORKSPACE, args.dist, 'apps/task-service/main.js')))
    throw new FriendlyError(`${args.dist} holds no build.`);
  if (args.cluster === true && !isInNamespaces()) process.exit(await runInNamespaces(report));
  report(`seed ${args.seed}, build in ${args.dist}`);
  if (args.upgradeFrom !== undefined) return upgrade(args.upgradeFrom, args, report);
  return args.cluster === true ? cluster(args) : chaos(args);
}

runScenario(choose);
