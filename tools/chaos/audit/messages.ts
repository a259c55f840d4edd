import type { Operation } from '../load/journal.ts';
import { type Check, CheckBuilder, countBy } from './check.ts';

/** A write as the store has it. */
export interface StoredWrite {
  readonly id: string;
  readonly group: string;
}

/**
 * Compares writes with what is stored, given in the order in which the store made it: each acknowledged one is there exactly once, one
 * that nobody acknowledged at most once, nothing is there that nobody asked for, and no write stands before one that had been
 * acknowledged before it was asked for (so that the order is a linearisation).
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
  for (const [id, count] of counts) if (count > 1) check.duplicated(`${id} (${count} times)`);
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
 * Compares committed facts with the events that tell of them: each fact has exactly one event (one id; it may have been published more
 * than once), and no event tells of something that did not happen.
 */
export function auditEvents(
  name: string,
  facts: readonly string[],
  published: readonly Published[],
): Check & { readonly deliveries: number } {
  const check = new CheckBuilder(name);
  const idsOf = new Map<string, Set<string>>();
  for (const { subject, messageId } of published)
    idsOf.set(subject, (idsOf.get(subject) ?? new Set()).add(messageId));
  const committed = new Set(facts);
  for (const fact of committed) if (!idsOf.has(fact)) check.lost(`the event of ${fact}`);
  for (const [subject, ids] of idsOf) {
    if (ids.size > 1) check.duplicated(`${subject} has ${ids.size} events`);
    if (!committed.has(subject)) check.wrong(`an event tells of ${subject}, which did not happen`);
  }
  return { ...check.done(committed.size, idsOf.size), deliveries: published.length };
}

/** What one receiver has taken down, against what was published for it: everything, and nothing twice. */
export function auditReceived(
  name: string,
  published: readonly string[],
  received: readonly string[],
): Check {
  const check = new CheckBuilder(name);
  const sent = new Set(published);
  const counts = new Map<string, number>();
  for (const id of received) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const id of sent) if (!counts.has(id)) check.lost(id);
  for (const [id, count] of counts) {
    if (count > 1) check.duplicated(`${id} (${count} times)`);
    if (!sent.has(id)) check.wrong(`${id} was received and never published`);
  }
  return check.done(sent.size, counts.size);
}

/** The events in the order in which each was published first. */
export function firstPublished<T extends { readonly messageId: string }>(published: readonly T[]): T[] {
  const seen = new Set<string>();
  return published.filter(({ messageId }) => {
    const isFirst = !seen.has(messageId);
    seen.add(messageId);
    return isFirst;
  });
}
