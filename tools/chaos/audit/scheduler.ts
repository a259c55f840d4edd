import type { BusinessUnitChange, PlantedTrigger } from '../load/journal.ts';
import { type Check, CheckBuilder, countBy } from './check.ts';

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

/** What the task service has made of the changes. */
export interface AppliedChanges {
  /** Every time that a change took effect, by event id, in order. */
  readonly applications: readonly string[];
  /** Event ids of which the inbox says that they were taken. */
  readonly taken: readonly string[];
  /** Facilities that have a trigger. */
  readonly triggered: ReadonlySet<number>;
}

/**
 * Each acknowledged change was taken, none took effect twice, and the triggers of each unit's facilities are those of its youngest change.
 * @param published every change that was published, acknowledged to its caller or not
 */
export function auditBusinessUnits(
  acknowledged: readonly BusinessUnitChange[],
  published: readonly BusinessUnitChange[],
  { applications, taken, triggered }: AppliedChanges,
): Check {
  const check = new CheckBuilder('business-unit changes: taken, applied once, the youngest in force');
  const known = new Set(taken);
  const sent = new Set(published.map(({ eventId }) => eventId));
  for (const { eventId } of acknowledged)
    if (!sent.has(eventId)) check.lost(`${eventId} was never published`);
  for (const eventId of sent) if (!known.has(eventId)) check.lost(`${eventId} was not taken`);
  const counts = countBy(applications, (eventId) => eventId);
  for (const [eventId, count] of counts)
    if (count > 1) check.duplicated(`${eventId} took effect ${count} times`);
  for (const change of youngestOfEachUnit(published)) {
    if (!counts.has(change.eventId)) check.lost(`the youngest change ${change.eventId} took no effect`);
    const wanted = change.changeType === 'Activated';
    for (const facilityId of change.facilityIds)
      if (triggered.has(facilityId) !== wanted)
        check.wrong(
          `facility ${facilityId} has ${wanted ? 'no trigger' : 'a trigger'} after ${change.changeType}`,
        );
  }
  return check.done(acknowledged.length, sent.size);
}

function youngestOfEachUnit(changes: readonly BusinessUnitChange[]): BusinessUnitChange[] {
  const youngest = new Map<number, BusinessUnitChange>();
  for (const change of changes) {
    const known = youngest.get(change.businessUnitId);
    if (known === undefined || Date.parse(known.occurredAtUtc) <= Date.parse(change.occurredAtUtc))
      youngest.set(change.businessUnitId, change);
  }
  return [...youngest.values()];
}
