import { auditRun } from '#verification/audit/audit.ts';
import { type Check, CheckBuilder } from '#verification/audit/check.ts';
import { gatherFacts } from '#verification/audit/gather.ts';
import { auditLoggedDefects, auditTraffic } from '#verification/audit/responses-and-logs.ts';
import type { Load } from '#verification/traffic/load.ts';
import { drain } from './drain.ts';
import { Disaster, type DrillNotes } from './drill/disaster.ts';
import { adjustFacts, type Difference, joinJournals, journalAt } from './drill/restored.ts';
import type { Result, Scenario, ScenarioContext } from './scenario.ts';

/**
 * Restores the platform to an instant with the documented commands. Afterwards it must have the state that
 * was acknowledged at that instant.
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

async function audit({ stage, load }: ScenarioContext<Disaster, Load>, notes: DrillNotes): Promise<Result> {
  const { platform } = stage;
  const { past, before, second, reconciled } = notes;
  const { facts, difference } = adjustFacts(await gatherFacts(platform), before);
  const journal = joinJournals(
    journalAt(past.journalAtInstant, load.journal, past.journalCopiedAtMs),
    second.journal,
  );
  const repaired = difference.unconsumedSchedules.filter((id) => reconciled.includes(id)).length;
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

/** A drill proves something only if events were in transit at the instant and later writes were undone. */
function auditDifference(repaired: number, { undone, unconsumedSchedules }: Difference): Check {
  const check = new CheckBuilder('events in transit at the instant: repaired by reconciliation');
  if (repaired === 0) check.wrong('no event of a schedule was in transit');
  if (undone === 0) check.wrong('no message was sent after the instant');
  return check.done(unconsumedSchedules.length, repaired);
}

function remarks(
  repaired: number,
  { undone, repeated, refired, unconsumedSchedules, unconsumedRequests }: Difference,
): string[] {
  return [
    `Neighbours had received ${undone} messages about undone changes. After the restore they received ${repeated} messages again under the same id, and ${refired} fires under a new id.`,
    `Lost with the queues: the events of ${unconsumedSchedules.length} schedules (${repaired} of them repaired by reconciliation), ${unconsumedRequests} requests for generation.`,
  ];
}
