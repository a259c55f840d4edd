import type { BusinessUnitChange, Life } from '#verification/traffic/journal.ts';
import { CHANGE_EVENTS, type PublishedMessage } from '#verification/traffic/published-messages.ts';
import { type Check, CheckBuilder, countBy } from './check.ts';
import { firstPublished } from './messages.ts';

/** What the task service has made of the changes. */
export interface AppliedChanges {
  /** Every time that a change took effect, by event id. */
  readonly applications: readonly string[];
  /** Event ids of which the inbox says that they were taken. */
  readonly taken: readonly string[];
  /** Facilities that have a trigger. */
  readonly triggered: ReadonlySet<number>;
}

/**
 * Each acknowledged change was taken, none took effect twice, and the triggers of each unit's facilities are
 * those of its youngest change.
 * @param published every change that was published, acknowledged to its caller or not
 */
export function auditBusinessUnits(
  acknowledged: readonly BusinessUnitChange[],
  published: readonly BusinessUnitChange[],
  { applications, taken, triggered }: AppliedChanges,
): Check {
  const check = new CheckBuilder('business-unit changes: taken, applied once, the youngest in force');
  const sent = new Set(published.map(({ eventId }) => eventId));
  const asked = acknowledged.map(({ eventId }) => eventId);
  check.eachOf(asked, sent, (eventId) => `${eventId} was never published`);
  check.eachOf(sent, new Set(taken), (eventId) => `${eventId} was not taken`);
  const counts = countBy(applications, (eventId) => eventId);
  check.atMostOnce(counts, (eventId, count) => `${eventId} took effect ${count} times`);
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

/**
 * Each schedule is as its last acknowledged change left it, and each change has one event; events of one type
 * come in the order of the changes. A change that nobody acknowledged may have happened.
 */
export function auditLives(
  lives: readonly Life[],
  facts: {
    readonly schedules: readonly { scheduleId: string; name: string; status: string }[];
    readonly published: readonly PublishedMessage[];
  },
): Check {
  const check = new CheckBuilder('schedules: changed as acknowledged, one event each, in order');
  const stored = new Map(facts.schedules.map((schedule) => [schedule.scheduleId, schedule]));
  const changes = facts.published.filter(({ name }) => CHANGE_EVENTS.includes(name));
  const told = new Map<string, string[]>();
  for (const change of firstPublished(changes)) {
    const scheduleId = String(change.message['scheduleId']);
    told.set(scheduleId, [...(told.get(scheduleId) ?? []), eventText(change)]);
  }
  for (const life of lives) {
    const found = stored.get(life.scheduleId);
    if (found === undefined) check.lost(`schedule ${life.scheduleId}`);
    else if (life.uncertain === null && (found.name !== life.name || found.status !== life.status))
      check.wrong(
        `schedule ${life.scheduleId} is ${found.status}, ${found.name}; acknowledged: ${life.status}, ${life.name}`,
      );
    compareEvents(check, life, told.get(life.scheduleId) ?? []);
  }
  const known = new Set(lives.map(({ scheduleId }) => scheduleId));
  check.nothingBut(known, told.keys(), (id) => `an event tells of a change of ${id}, which nobody asked for`);
  return check.done(
    lives.reduce((sum, { events }) => sum + events.length, 0),
    changes.length,
  );
}

function compareEvents(
  check: CheckBuilder,
  { scheduleId, events, uncertain }: Life,
  told: readonly string[],
): void {
  const certain = told.filter((event) => event !== uncertain);
  for (const type of CHANGE_EVENTS) {
    const ofType = (event: string): boolean => event.startsWith(`${type} `);
    const [expected, found] = [events.filter(ofType), certain.filter(ofType)];
    if (expected.join() !== found.join())
      check.wrong(`schedule ${scheduleId} was told of by [${found.join()}] instead of [${expected.join()}]`);
  }
  const isTwice = told.length - certain.length > 1;
  check.noneTwice(isTwice ? [`${String(uncertain)} of ${scheduleId}`] : []);
}

function eventText({ name, message }: PublishedMessage): string {
  return `${name} ${String(message['taskInstanceId'] ?? message['name'])}`;
}
