/**
 * `npm run leak`: sends the traffic of an hour in a few minutes. The resources of the services must level
 * off.
 */
import { commandLine, wholeNumber } from '#platform/command-line.ts';
import { runScenario } from '#verification/scenarios/runner.ts';
import { leak, type LeakPlan } from './leak.ts';

const DESCRIPTION = `Sends the built platform ordinary traffic as fast as possible: settings, tokens and refresh chains, revocations, schedules,
completions, messages on both buses, invalid requests, new connections. In between it samples memory, files and connections of each service, with
no request in flight and after garbage collection. A line through the second half of the samples must hardly rise. Exits with 1 if something
grows, or if a log reports a defect.`;

runScenario(() => {
  const plan = commandLine('npm run leak', '[options]', DESCRIPTION)
    .option(
      '--requests <n>',
      'number of requests; the default is ten a second for an hour',
      wholeNumber,
      36_000,
    )
    .option('--samples <n>', 'number of rounds, with a sample after each', wholeNumber, 24)
    .option('--seed <n>', 'the same seed sends the same requests', wholeNumber, 1)
    .option('--no-build', 'test the existing build')
    .parse()
    .opts<LeakPlan>();
  return leak(plan);
});
