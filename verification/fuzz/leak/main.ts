/** `npm run leak`: an hour's traffic in a few minutes; what the services hold must level off. */
import { commandLine, wholeNumber } from '#platform/command-line.ts';
import { runScenario } from '#verification/scenarios/runner.ts';
import { leak, type LeakPlan } from './leak.ts';

const DESCRIPTION = `Sends the built platform ordinary traffic as fast as it goes: settings, tokens and refresh chains, revocations, schedules,
completions, messages on both buses, mistakes, new connections. In between it samples what each service holds, with nothing in flight and
garbage collected; a line through the second half may hardly rise. Ends with 1 when something grows, or a log tells of a defect.`;

runScenario(() => {
  const plan = commandLine('npm run leak', '[options]', DESCRIPTION)
    .option('--requests <n>', 'how many; the default is ten a second for an hour', wholeNumber, 36_000)
    .option('--samples <n>', 'in how many rounds, with a sample after each', wholeNumber, 24)
    .option('--seed <n>', 'the same seed sends the same', wholeNumber, 1)
    .option('--no-build', 'test what was built before')
    .parse()
    .opts<LeakPlan>();
  return leak(plan);
});
