import type { Operation } from '#verification/traffic/journal.ts';
import { type Check, CheckBuilder, countBy } from './check.ts';

/** A write as the store has it. */
export interface StoredWrite {
  readonly id: string;
  readonly group: string;
}

/**
 * Compares writes with what is stored, given in the order in which the store made it: each acknowledged one
 * is there exactly once, one that nobody acknowledged at most once, nothing is there that nobody asked for,
 * and no write stands before one that had been acknowledged before it was asked for (so that the order is a
 * linearisation).
 */
export function auditWrites(
  name: string,
  operations: readonly Operation[],
  stored: readonly StoredWrite[],
): Check {
  const check = new CheckBuilder(name);
  const counts = countBy(stored, ({ id }) => id);
  const acknowledged = operations.filter(({ acknowledgedAtMs }) => acknowledgedAtMs !== null);
  for (const { id, group } of acknowledged) if (!counts.has(id)) check.lost(`${id} of ${group}`);
  check.atMostOnce(counts);
  const asked = new Map(operations.map((operation) => [operation.id, operation]));
  for (const { id, group } of stored) if (!asked.has(id)) check.wrong(`nobody asked for ${id} of ${group}`);
  for (const finding of findDisorder(asked, stored)) check.wrong(finding);
  return check.done(acknowledged.length, stored.length);
}

/** Writes that stand in their group before one that was acknowledged before they were asked for. */
function findDisorder(asked: ReadonlyMap<string, Operation>, stored: readonly StoredWrite[]): string[] {
  const findings: string[] = [];
  const earliest = new Map<string, Operation>();
  for (const { id, group } of stored.toReversed()) {
    const operation = asked.get(id);
    if (operation === undefined) continue;
    const later = earliest.get(group);
    if (later !== undefined && (later.acknowledgedAtMs ?? Infinity) < operation.invokedAtMs)
      findings.push(
        `order of ${group}: ${id} stands before ${later.id}, which was acknowledged before it was asked for`,
      );
    if (acknowledgedBefore(operation, later)) earliest.set(group, operation);
  }
  return findings;
}

function acknowledgedBefore(operation: Operation, other: Operation | undefined): boolean {
  return (operation.acknowledgedAtMs ?? Infinity) <= (other?.acknowledgedAtMs ?? Infinity);
}

/** The current value of each group has to be its last write. */
export function auditLastValues(current: ReadonlyMap<string, string>, stored: readonly StoredWrite[]): Check {
  const check = new CheckBuilder('settings: current value is the last in the history');
  const last = new Map(stored.map(({ group, id }) => [group, id]));
  for (const [group, id] of last)
    if (current.get(group) !== id)
      check.wrong(`${group} is ${current.get(group) ?? 'gone'}, last written ${id}`);
  for (const group of current.keys()) if (!last.has(group)) check.wrong(`${group} has no history`);
  return check.done(last.size, current.size);
}

/** An event as it was published: possibly several times, each time under the same id. */
export interface Published {
  readonly messageId: string;
  /** What the event tells of, e.g. a schedule's id. */
  readonly subject: string;
}

/**
 * Compares committed facts with the events that tell of them: each fact has exactly one event (one id; it may
 * have been published more than once), and no event tells of something that did not happen.
 */
export function auditEvents(
  name: string,
  facts: readonly string[],
  published: readonly Published[],
): Check & { readonly deliveries: number } {
  const check = new CheckBuilder(name);
  const committed = new Set(facts);
  const counts = countBy(firstPublished(published), ({ subject }) => subject);
  check.eachOf(committed, counts, (fact) => `the event of ${fact}`);
  check.atMostOnce(counts, (subject, count) => `${subject} has ${count} events`);
  check.nothingBut(committed, counts.keys(), (fact) => `an event tells of ${fact}, which did not happen`);
  return { ...check.done(committed.size, counts.size), deliveries: published.length };
}

/**
 * Compares what one receiver has taken with what was published for it: everything, and nothing else.
 * @param received as the receiver keeps it: once by each id, however often it came
 */
export function auditReceived(
  name: string,
  published: readonly string[],
  received: readonly string[],
): Check {
  const check = new CheckBuilder(name);
  const [sent, taken] = [new Set(published), new Set(received)];
  check.eachOf(sent, taken);
  check.nothingBut(sent, taken, (id) => `${id} was received and never published`);
  return check.done(sent.size, taken.size);
}

/**
 * Compares what was asked for with what is stored under ids of which each can be there but once: everything
 * acknowledged is there, and nothing that nobody asked for.
 */
export function auditStored(
  name: string,
  operations: readonly Operation[],
  stored: readonly string[],
): Check {
  const check = new CheckBuilder(name);
  const acknowledged = operations.filter(({ acknowledgedAtMs }) => acknowledgedAtMs !== null);
  check.eachOf(
    acknowledged.map(({ id }) => id),
    new Set(stored),
  );
  check.nothingBut(new Set(operations.map(({ id }) => id)), stored, (id) => `nobody asked for ${id}`);
  return check.done(acknowledged.length, stored.length);
}

/** The events in the order in which each was published first. */
export function firstPublished<T extends { readonly messageId: string }>(published: readonly T[]): T[] {
  const firsts = new Map<string, T>();
  for (const event of published) if (!firsts.has(event.messageId)) firsts.set(event.messageId, event);
  return [...firsts.values()];
}
