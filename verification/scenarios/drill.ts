import { auditRun } from '#verification/audit/audit.ts';
import { type Check, CheckBuilder } from '#verification/audit/check.ts';
import { gatherFacts } from '#verification/audit/gather.ts';
import { auditLoggedDefects, auditTraffic } from '#verification/audit/replicas.ts';
import type { Load } from '#verification/traffic/load.ts';
import { drain } from './drain.ts';
import { Disaster, type DrillNotes } from './drill/disaster.ts';
import { adjustFacts, type Difference, joinJournals, journalAt } from './drill/restored.ts';
import type { Result, Scenario, Scene } from './scenario.ts';

/**
 * A restore to an instant by the documented commands, after which everything is as it was acknowledged then.
 */
export function drill(seed: number): Scenario<Disaster, Load, DrillNotes> {
  return {
    command: `npm run drill -- --seed ${seed}`,
    resultFile: `drill/seed-${seed}.json`,
    open: (report) => Disaster.open(report),
    load: (disaster) => disaster.start(seed),
    steps: ({ stage, load }) => stage.happen(load, seed + 1),
    drain: async ({ stage }, { second }) => {
      await second.finish();
      await drain(stage.platform, second.journal);
    },
    audit,
  };
}

async function audit({ stage, load }: Scene<Disaster, Load>, notes: DrillNotes): Promise<Result> {
  const { platform } = stage;
  const { past, before, second, reconciled } = notes;
  const { facts, difference } = adjustFacts(await gatherFacts(platform), before);
  const journal = joinJournals(journalAt(past.then, load.journal, past.thenMs), second.journal);
  const repaired = difference.schedulesUntaken.filter((id) => reconciled.includes(id)).length;
  return {
    checks: [
      ...notes.checks,
      ...auditRun(journal, facts, { zones: second.zones, isUpgrade: false }),
      auditTraffic(load.traffic, [], platform.logs()),
      auditTraffic(second.traffic, [], platform.logs()),
      auditLoggedDefects(platform.logs()),
      auditDifference(repaired, difference),
    ],
    blocks: [remarks(repaired, difference)],
    success: `restored to ${past.instant}: nothing lost, nothing twice`,
    figures: { instant: past.instant, difference, repaired },
  };
}

/** A drill in which nothing was on its way at the instant, or nothing was undone, has shown nothing. */
function auditDifference(repaired: number, { undone, schedulesUntaken }: Difference): Check {
  const check = new CheckBuilder('events on their way at the instant: found by reconciliation');
  if (repaired === 0) check.wrong('no schedule waited for its event');
  if (undone === 0) check.wrong('nothing was done after the instant');
  return check.done(schedulesUntaken.length, repaired);
}

function remarks(
  repaired: number,
  { undone, again, firedAgain, schedulesUntaken, requestsUntaken }: Difference,
): string[] {
  return [
    `Neighbours had heard ${undone} messages of what is undone, and hear ${again} again under their id and ${firedAgain} fires under another.`,
    `Lost with the queues: the events of ${schedulesUntaken.length} schedules (${repaired} of them found by reconciliation), ${requestsUntaken} requests for generation.`,
  ];
}
