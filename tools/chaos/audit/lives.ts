import type { Life } from '../load/journal.ts';
import { CHANGE_EVENTS, type PublishedMessage } from '../published-messages.ts';
import { type Check, CheckBuilder } from './check.ts';
import type { StoredSchedule } from './gather.ts';
import { firstPublished } from './messages.ts';

/**
 * Each schedule is as its last acknowledged change left it, and each change has one event; events of one type come in the order of the
 * changes. A change that nobody acknowledged may have happened.
 */
export function auditLives(
  lives: readonly Life[],
  facts: {
    readonly schedules: readonly Pick<StoredSchedule, 'scheduleId' | 'name' | 'status'>[];
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
  if (told.length - certain.length > 1) check.duplicated(`${String(uncertain)} of ${scheduleId}`);
}

function eventText({ name, message }: PublishedMessage): string {
  return `${name} ${String(message['taskInstanceId'] ?? message['name'])}`;
}
