/**
 * `npm run verify:mutants`: shows that chaos can find mistakes. Plants mutants in copies of the bundles and
 * starts, for each copy, the shortest chaos run that must notice them.
 */
import { ArgumentsError, commandLine, runMain, wholeNumber } from '#platform/command-line.ts';
import { MUTANTS } from './catalogue.ts';
import { chooseMutants, groupMutants, PARTS, partOf, roundsOf } from './groups.ts';
import { buildOnce, runClustered, runMutants, runUnbroken } from './run.ts';
import { keepResults, writeTable } from './results.ts';
import type { Mutant } from './mutant.ts';

const DESCRIPTION =
  'Plants known mistakes in copies of the build and runs chaos against each copy. Exits with 0 only if every mistake was noticed.';
const ABOUT_PARTS = `
Without --part each mistake is planted alone, so every finding of its run is its effect.
With --part mistakes that break different promises share a copy, and each must have a finding that matches no
other mistake of the copy. That is faster but proves less: one mistake may help to find another.`;

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
    .argument('[names...]', 'only these mistakes')
    .option(
      '--part <number>',
      `plants several mistakes per copy, and runs every ${PARTS}rd copy, starting at this number`,
      wholeNumber,
    )
    .option('--cluster', 'runs on three machines, with their faults')
    .option('--built', 'uses the build in dist/ without rebuilding it')
    .option('--unbroken', 'does the same runs with the unchanged build, which must have no findings')
    .option('--write', 'writes all results so far into docs/reliability.md')
    .addHelpText('after', ABOUT_PARTS)
    .parse(process.argv.slice(2), { from: 'user' });
  const flags = command.opts<Flags>();
  if (flags.part !== undefined && flags.cluster === true)
    throw new ArgumentsError('Use either --part or --cluster.');
  const chosen = chooseMutants(MUTANTS, command.args);
  const copies =
    flags.part === undefined ? chosen.map((mutant) => [mutant]) : partOf(groupMutants(chosen), flags.part);
  if (flags.built !== true && !buildOnce()) return;
  const failures = flags.unbroken === true ? runAllUnbroken(copies) : runAll(copies, flags);
  if (flags.write === true) writeTable();
  process.exitCode = failures === 0 && copies.length > 0 ? 0 : 1;
}

/** Returns the number of mutants that were not noticed. */
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

/** Runs each combination of rounds once. Returns the number of runs with findings. */
function runAllUnbroken(copies: readonly (readonly Mutant[])[]): number {
  const runs = new Map(
    copies.map((mutants) => {
      const rounds = roundsOf(mutants);
      return [JSON.stringify(rounds), rounds];
    }),
  );
  const failed = [...runs.values()].filter((rounds) => !runUnbroken(rounds));
  console.log(`\n${runs.size - failed.length} of ${runs.size} runs had no findings`);
  return failed.length;
}

runMain(main);
