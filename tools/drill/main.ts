/** `npm run drill`: backs a platform up under load, destroys it, restores it to an instant as docs/operations.md says, and audits it. */
import { checkTable, isClean } from '#chaos/report.ts';
import { commandLine, onEndSignal, runMain, timedReport, wholeNumber } from '#platform/command-line.ts';
import { FriendlyError } from '#platform/errors.ts';
import { findOnPath } from '#platform/processes.ts';
import { PrivateServers } from '#platform/test-platform.ts';
import { Drill, type DrillResult } from './drill.ts';

/** Whatever ends this process before the audit must not look like success. */
const NOT_AUDITED = 2;

async function main(): Promise<void> {
  process.exitCode = NOT_AUDITED;
  const { seed } = commandLine(
    'npm run drill',
    '[-- flags]',
    'Takes a base backup of a platform under load, destroys its database and empties its broker, restores it to an instant by the commands of ' +
      'docs/operations.md, and compares it with what had been acknowledged then. Needs psql. Ends with 1 when anything is lost or twice.',
  )
    .option('--seed <number>', 'what the load does', wholeNumber, 1)
    .parse()
    .opts<{ seed: number }>();
  if (findOnPath('psql') === null) throw new FriendlyError('psql is missing (Debian: postgresql-client).');
  const report = timedReport();
  const servers = await PrivateServers.open({}, report);
  onEndSignal(() => void servers.close().finally(() => process.exit(130)));
  try {
    const result = await (await Drill.prepare(servers, report)).run(seed);
    console.log(renderDrill(result));
    process.exitCode = isClean(result) ? 0 : 1;
  } finally {
    await servers.close();
  }
  process.exit();
}

function renderDrill(result: DrillResult): string {
  const { undone, again, firedAgain, schedulesUntaken, requestsUntaken } = result.difference;
  return [
    '',
    ...checkTable(result.checks),
    '',
    `Neighbours had heard ${undone} messages of what is undone, and hear ${again} again under their id and ${firedAgain} fires under another.`,
    `Lost with the queues: the events of ${schedulesUntaken.length} schedules (${result.repaired} of them found by reconciliation), ${requestsUntaken} requests for generation.`,
    ...result.checks.flatMap(({ name, findings }) => findings.map((text) => `✘ ${name}: ${text}`)),
    isClean(result) ? `✔ restored to ${result.instant}: nothing lost, nothing twice` : '✘ see above',
  ].join('\n');
}

runMain(main, NOT_AUDITED);
