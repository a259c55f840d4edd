import { onEndSignal, runMain, timedReport } from '#platform/command-line.ts';
import { flagEmptyComparison } from '#verification/audit/check.ts';
import { isClean, renderReport, saveResult, seconds } from './report.ts';
import type { Report, Scenario, Stage } from './scenario.ts';

/** Exit code of a run that ended before its audit. It must not look like success. */
const NOT_AUDITED = 2;

/**
 * Runs the chosen scenario and exits: with 0 if there were no findings, with 1 if there were, with 2 if the
 * run ended before its audit.
 */
export function runScenario<S extends Stage, L, N>(
  choose: (report: Report) => Scenario<S, L, N> | Promise<Scenario<S, L, N>>,
): void {
  process.exitCode = NOT_AUDITED;
  const report = timedReport();
  const run = async (): Promise<void> => {
    process.exitCode = (await play(await choose(report), report)) ? 0 : 1;
    process.exit();
  };
  runMain(run, NOT_AUDITED);
}

/** Plays a scenario. Returns true if there were no findings. */
async function play<S extends Stage, L, N>(scenario: Scenario<S, L, N>, report: Report): Promise<boolean> {
  const stage = await scenario.open(report);
  onEndSignal(() => void stage.stop().finally(() => process.exit(130)));
  try {
    const load = await scenario.load(stage, report);
    const context = { stage, load, report };
    const notes = await scenario.steps(context);
    const endedAtMs = performance.now();
    await scenario.drain(context, notes);
    const drainedAfterMs = performance.now() - endedAtMs;
    report(`load ended, drained after ${seconds(drainedAfterMs)}`);
    const { figures, ...result } = await scenario.audit(context, notes);
    const checks = result.checks.map(flagEmptyComparison);
    console.log(renderReport({ ...result, checks, command: scenario.command }));
    const file = saveResult(scenario.resultFile, { ...figures, drainedAfterMs, checks });
    console.log(`All results: ${file}`);
    return isClean(checks);
  } finally {
    await stage.stop();
  }
}
