import type { BusinessUnitChange, ChangedSchedule } from '#verification/traffic/journal.ts';
import { CHANGE_EVENTS, type PublishedMessage } from '#verification/traffic/published-messages.ts';
import { type Check, CheckBuilder, countBy } from './check.ts';
import { firstPublished } from './messages.ts';

/** Effects of business-unit changes in the task service. */
export interface AppliedChanges {
  /** The event id of a change, once for each time that it took effect. */
  readonly applications: readonly string[];
  /** Event ids in the inbox. */
  readonly consumed: readonly string[];
  /** Facilities that have a trigger. */
  readonly triggered: ReadonlySet<number>;
}

/**
 * Checks that each acknowledged change was consumed, that none took effect twice, and that the facilities of
 * each unit have the triggers that its youngest change asks for.
 * @param published every published change, acknowledged to its caller or not
 */
export function auditBusinessUnits(
  acknowledged: readonly BusinessUnitChange[],
  published: readonly BusinessUnitChange[],
  { applications, consumed, triggered }: AppliedChanges,
): Check {
  const check = new CheckBuilder('business-unit changes: consumed, applied once, the youngest in force');
  const sent = new Set(published.map(({ eventId }) => eventId));
  const acknowledgedIds = acknowledged.map(({ eventId }) => eventId);
  check.expectEach(acknowledgedIds, sent, (eventId) => `${eventId} was never published`);
  check.expectEach(sent, new Set(consumed), (eventId) => `${eventId} was not consumed`);
  const counts = countBy(applications, (eventId) => eventId);
  check.expectAtMostOnce(counts, (eventId, count) => `${eventId} took effect ${count} times`);
  for (const change of youngestOfEachUnit(published)) {
    if (!counts.has(change.eventId)) check.lost(`the youngest change ${change.eventId} took no effect`);
    const isActive = change.changeType === 'Activated';
    for (const facilityId of change.facilityIds)
      if (triggered.has(facilityId) !== isActive)
        check.wrong(
          `facility ${facilityId} has ${isActive ? 'no trigger' : 'a trigger'} after ${change.changeType}`,
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

/**
 * Checks that each schedule has the state of its last acknowledged change, that each change has exactly one
 * event, and that events of one type are published in the order of the changes. An unacknowledged change may
 * or may not have taken effect.
 */
export function auditScheduleChanges(
  changedSchedules: readonly ChangedSchedule[],
  facts: {
    readonly schedules: readonly { scheduleId: string; name: string; status: string }[];
    readonly published: readonly PublishedMessage[];
  },
): Check {
  const check = new CheckBuilder('schedules: changed as acknowledged, one event each, in order');
  const stored = new Map(facts.schedules.map((schedule) => [schedule.scheduleId, schedule]));
  const changes = facts.published.filter(({ name }) => CHANGE_EVENTS.includes(name));
  const eventsOf = new Map<string, string[]>();
  for (const change of firstPublished(changes)) {
    const scheduleId = String(change.message['scheduleId']);
    eventsOf.set(scheduleId, [...(eventsOf.get(scheduleId) ?? []), eventText(change)]);
  }
  for (const changed of changedSchedules) {
    const found = stored.get(changed.scheduleId);
    if (found === undefined) check.lost(`schedule ${changed.scheduleId}`);
    else if (
      changed.uncertainEvent === null &&
      (found.name !== changed.name || found.status !== changed.status)
    )
      check.wrong(
        `schedule ${changed.scheduleId} is ${found.status}, ${found.name}; acknowledged: ${changed.status}, ${changed.name}`,
      );
    compareEvents(check, changed, eventsOf.get(changed.scheduleId) ?? []);
  }
  const known = new Set(changedSchedules.map(({ scheduleId }) => scheduleId));
  check.expectOnly(
    known,
    eventsOf.keys(),
    (id) => `an event reports a change of ${id} that was never requested`,
  );
  return check.done(
    changedSchedules.reduce((sum, { events }) => sum + events.length, 0),
    changes.length,
  );
}

function compareEvents(
  check: CheckBuilder,
  { scheduleId, events, uncertainEvent }: ChangedSchedule,
  published: readonly string[],
): void {
  const certain = published.filter((event) => event !== uncertainEvent);
  for (const type of CHANGE_EVENTS) {
    const ofType = (event: string): boolean => event.startsWith(`${type} `);
    const [expected, found] = [events.filter(ofType), certain.filter(ofType)];
    if (expected.join() !== found.join())
      check.wrong(`schedule ${scheduleId} has the events [${found.join()}] instead of [${expected.join()}]`);
  }
  const isTwice = published.length - certain.length > 1;
  check.addDuplicates(isTwice ? [`${String(uncertainEvent)} of ${scheduleId}`] : []);
}

function eventText({ name, message }: PublishedMessage): string {
  return `${name} ${String(message['taskInstanceId'] ?? message['name'])}`;
}
