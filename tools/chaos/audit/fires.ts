import type { PlantedTrigger } from '../load/journal.ts';
import { CheckBuilder, countBy, type Check } from './check.ts';

const MINUTE_MS = 60_000;

/** A fire that the scheduler has recorded. */
export interface StoredFire {
  readonly facilityId: number;
  readonly scheduledAtMs: number;
  readonly messageId: string;
}

/** A fire as it was published. */
export interface PublishedFire {
  readonly facilityId: number;
  readonly scheduledAtMs: number;
  readonly messageId: string;
}

/**
 * Each minute from a planted trigger's first to its next fire was fired exactly once, and every published fire is one of them.
 * @param nextFireAtMs where each facility's trigger stands now
 */
export function auditFires(
  planted: readonly PlantedTrigger[],
  nextFireAtMs: ReadonlyMap<number, number>,
  { stored, published }: { stored: readonly StoredFire[]; published: readonly PublishedFire[] },
): Check {
  const check = new CheckBuilder('fires: each (facility, instant) once');
  const counts = countBy(stored, keyOf);
  const ids = new Map<string, Set<string>>();
  for (const fire of published) ids.set(keyOf(fire), (ids.get(keyOf(fire)) ?? new Set()).add(fire.messageId));
  let bound = 0;
  for (const { facilityId, firstDueAtMs } of planted) {
    const end = nextFireAtMs.get(facilityId);
    if (end === undefined) check.lost(`the trigger of facility ${facilityId}`);
    for (let at = firstDueAtMs; at < (end ?? 0); at += MINUTE_MS) {
      bound += 1;
      const key = keyOf({ facilityId, scheduledAtMs: at });
      if ((counts.get(key) ?? 0) === 0) check.lost(`fire of ${key}`);
      if (!ids.has(key)) check.lost(`message of the fire of ${key}`);
    }
  }
  for (const [key, count] of counts) if (count > 1) check.duplicated(`fire of ${key} (${count} times)`);
  for (const [key, of] of ids) {
    if (of.size > 1) check.duplicated(`${key} was published as ${of.size} messages`);
    if (!counts.has(key)) check.wrong(`${key} was published and not recorded`);
  }
  for (const finding of findFireDisorder(published)) check.wrong(finding);
  return check.done(bound, stored.length);
}

/** Facilities whose occurrences were first published in another order than they were due. */
function findFireDisorder(published: readonly PublishedFire[]): string[] {
  const newest = new Map<number, number>();
  const seen = new Set<string>();
  const findings: string[] = [];
  for (const { facilityId, scheduledAtMs, messageId } of published) {
    if (seen.has(messageId)) continue;
    seen.add(messageId);
    if ((newest.get(facilityId) ?? 0) > scheduledAtMs)
      findings.push(`order: ${keyOf({ facilityId, scheduledAtMs })} was published after a later one`);
    newest.set(facilityId, Math.max(newest.get(facilityId) ?? 0, scheduledAtMs));
  }
  return findings;
}

function keyOf({ facilityId, scheduledAtMs }: { facilityId: number; scheduledAtMs: number }): string {
  return `${facilityId} ${new Date(scheduledAtMs).toISOString()}`;
}
