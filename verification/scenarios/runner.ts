import { onEndSignal, runMain, timedReport } from '#platform/command-line.ts';
import { withFigures } from '#verification/audit/check.ts';
import { isClean, renderReport, saveResult, seconds } from './report.ts';
import type { Report, Scenario, Stage } from './scenario.ts';

/** Whatever ends this process before the audit must not look like success. */
const NOT_AUDITED = 2;

/** Runs the scenario that the command line asks for, and ends the process: with 0 when nothing was found,
 *  1 when something was, 2 when nothing was audited. */
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

/** True when nothing was found. */
async function play<S extends Stage, L, N>(scenario: Scenario<S, L, N>, report: Report): Promise<boolean> {
  const stage = await scenario.open(report);
  onEndSignal(() => void stage.stop().finally(() => process.exit(130)));
  try {
    const load = await scenario.load(stage, report);
    const scene = { stage, load, report };
    const notes = await scenario.steps(scene);
    const endedAtMs = performance.now();
    await scenario.drain(scene, notes);
    const drainedAfterMs = performance.now() - endedAtMs;
    report(`load ended, drained after ${seconds(drainedAfterMs)}`);
    const { figures, ...result } = await scenario.audit(scene, notes);
    const checks = result.checks.map(withFigures);
    console.log(renderReport({ ...result, checks, command: scenario.command }));
    const file = saveResult(scenario.resultFile, { ...figures, drainedAfterMs, checks });
    console.log(`Everything: ${file}`);
    return isClean(checks);
  } finally {
    await stage.stop();
  }
}
