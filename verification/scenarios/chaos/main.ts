/**
 * `npm run chaos`: breaks a platform of its own under load and compares what was acknowledged with what is
 * there.
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
import { isInWorld, runInWorld } from './engines/world.ts';
import type { RoundScenario } from './in-rounds.ts';
import { parseChaosArguments } from './plan.ts';

/** What the command line asks for. `--cluster` runs this program again inside namespaces of its own. */
async function choose(report: Report): Promise<RoundScenario> {
  const args = parseChaosArguments(process.argv.slice(2), Math.floor(Math.random() * 1_000_000));
  if (args.dist !== 'dist' && !existsSync(join(WORKSPACE, args.dist, 'apps/task-service/main.js')))
    throw new FriendlyError(`${args.dist} holds no build.`);
  if (args.cluster === true && !isInWorld()) process.exit(await runInWorld(report));
  report(`seed ${args.seed}, build in ${args.dist}`);
  if (args.upgradeFrom !== undefined) return upgrade(args.upgradeFrom, args, report);
  return args.cluster === true ? cluster(args) : chaos(args);
}

runScenario(choose);
