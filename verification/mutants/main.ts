/**
 * `npm run verify:mutants`: shows that a chaos run notices what it is for. Plants mistakes in copies of the
 * bundles, and has the shortest run that suffices find each.
 */
import { ArgumentsError, commandLine, runMain, wholeNumber } from '#platform/command-line.ts';
import { MUTANTS } from './catalogue.ts';
import { chooseMutants, groupMutants, PARTS, partOf, scenarioOf } from './groups.ts';
import { buildOnce, runClustered, runMutants, runUnbroken } from './run.ts';
import { keepResults, writeTable } from './results.ts';
import type { Mutant } from './mutant.ts';

const DESCRIPTION =
  'Plants known mistakes in copies of the build and runs chaos against each copy. Ends with 0 only when all were noticed.';
const ABOUT_PARTS = `
Without --part each mistake is planted alone: what the run finds is its doing.
With --part those that break other promises share a copy, and each has to be named by a finding that fits no
other of the copy. That is faster, and shows less: one mistake may help to find another.`;

interface Flags {
  readonly part?: number;
  readonly cluster?: true;
  readonly built?: true;
  readonly unbroken?: true;
  readonly write?: true;
}

function main(): void {
  process.exitCode = 1;
  const command = commandLine('npm run verify:mutants', '[-- flags] [names]', DESCRIPTION)
    .argument('[names...]', 'only these')
    .option(
      '--part <number>',
      `several in a copy; of the copies only every ${PARTS}rd, by this number`,
      wholeNumber,
    )
    .option('--cluster', 'on three machines, with their faults')
    .option('--built', 'what is in dist/ is not built anew')
    .option('--unbroken', 'runs what is unbroken the same way, which has to find nothing')
    .option('--write', 'writes the results so far into docs/reliability.md')
    .addHelpText('after', ABOUT_PARTS)
    .parse(process.argv.slice(2), { from: 'user' });
  const flags = command.opts<Flags>();
  if (flags.part !== undefined && flags.cluster === true)
    throw new ArgumentsError('--part and --cluster: one of them.');
  const chosen = chooseMutants(MUTANTS, command.args);
  const copies =
    flags.part === undefined ? chosen.map((mutant) => [mutant]) : partOf(groupMutants(chosen), flags.part);
  if (flags.built !== true && !buildOnce()) return;
  const failures = flags.unbroken === true ? runAllUnbroken(copies) : runAll(copies, flags);
  if (flags.write === true) writeTable();
  process.exitCode = failures === 0 && copies.length > 0 ? 0 : 1;
}

/** Gives how many were not noticed. */
function runAll(copies: readonly (readonly Mutant[])[], { cluster: isClustered }: Flags): number {
  const results = copies.flatMap((mutants) => {
    const found = isClustered === true ? mutants.flatMap(runClustered) : runMutants(mutants);
    if (isClustered !== true) keepResults(found);
    return found;
  });
  const survivors = results.filter(({ finding }) => finding === null);
  const runs = copies.length === results.length ? '' : ` in ${copies.length} runs`;
  console.log(`\n${results.length - survivors.length} of ${results.length} mistakes were noticed${runs}`);
  for (const { name } of survivors) console.log(`✘ ${name}`);
  return survivors.length;
}

/** Each scenario once. Gives how many found something. */
function runAllUnbroken(copies: readonly (readonly Mutant[])[]): number {
  const scenarios = new Map(
    copies.map((mutants) => {
      const scenario = scenarioOf(mutants);
      return [JSON.stringify(scenario), scenario];
    }),
  );
  const failed = [...scenarios.values()].filter((scenario) => !runUnbroken(scenario));
  console.log(`\n${scenarios.size - failed.length} of ${scenarios.size} runs found nothing`);
  return failed.length;
}

runMain(main);
