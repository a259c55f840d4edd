import type { BusinessUnitChange } from '../load/journal.ts';
import { CheckBuilder, countBy, type Check } from './check.ts';

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
