import type { Operation } from '#verification/traffic/journal.ts';
import { type Check, CheckBuilder, countBy } from './check.ts';

/** A stored write. */
export interface StoredWrite {
  readonly id: string;
  readonly group: string;
}

/**
 * Compares requested writes with stored ones. Each acknowledged write must be stored exactly once, each other
 * requested write at most once, and nothing that was never requested. The stored order must be a
 * linearisation: a write that was acknowledged before another was requested must precede it.
 * @param stored in the order in which the store applied them
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
  check.expectAtMostOnce(counts);
  const requested = new Map(operations.map((operation) => [operation.id, operation]));
  for (const { id, group } of stored)
    if (!requested.has(id)) check.wrong(`never requested: ${id} of ${group}`);
  for (const finding of findDisorder(requested, stored)) check.wrong(finding);
  return check.done(acknowledged.length, stored.length);
}

/** Finds writes that precede, in their group, a write that was acknowledged before they were requested. */
function findDisorder(requested: ReadonlyMap<string, Operation>, stored: readonly StoredWrite[]): string[] {
  const findings: string[] = [];
  const earliest = new Map<string, Operation>();
  for (const { id, group } of stored.toReversed()) {
    const operation = requested.get(id);
    if (operation === undefined) continue;
    const later = earliest.get(group);
    if (later !== undefined && (later.acknowledgedAtMs ?? Infinity) < operation.invokedAtMs)
      findings.push(
        `order of ${group}: ${id} precedes ${later.id}, which was acknowledged before ${id} was requested`,
      );
    if (acknowledgedBefore(operation, later)) earliest.set(group, operation);
  }
  return findings;
}

function acknowledgedBefore(operation: Operation, other: Operation | undefined): boolean {
  return (operation.acknowledgedAtMs ?? Infinity) <= (other?.acknowledgedAtMs ?? Infinity);
}

/** Checks that the current value of each setting is its last write. */
export function auditLastValues(current: ReadonlyMap<string, string>, stored: readonly StoredWrite[]): Check {
  const check = new CheckBuilder('settings: current value is the last in the history');
  const last = new Map(stored.map(({ group, id }) => [group, id]));
  for (const [group, id] of last)
    if (current.get(group) !== id)
      check.wrong(`${group} is ${current.get(group) ?? 'gone'}, last written ${id}`);
  for (const group of current.keys()) if (!last.has(group)) check.wrong(`${group} has no history`);
  return check.done(last.size, current.size);
}

/** A published event. It may be published several times, always under the same id. */
export interface Published {
  readonly messageId: string;
  /** Id of the changed entity, e.g. of a schedule. */
  readonly subject: string;
}

/**
 * Compares committed facts with their events. Each fact must have exactly one event (one id, which may be
 * published more than once), and each event must report a committed fact.
 */
export function auditEvents(
  name: string,
  facts: readonly string[],
  published: readonly Published[],
): Check & { readonly deliveries: number } {
  const check = new CheckBuilder(name);
  const committed = new Set(facts);
  const counts = countBy(firstPublished(published), ({ subject }) => subject);
  check.expectEach(committed, counts, (fact) => `the event of ${fact}`);
  check.expectAtMostOnce(counts, (subject, count) => `${subject} has ${count} events`);
  check.expectOnly(committed, counts.keys(), (fact) => `an event reports ${fact}, which did not happen`);
  return { ...check.done(committed.size, counts.size), deliveries: published.length };
}

/**
 * Checks that a receiver has consumed every message that was published for it, and no other.
 * @param received the ids that it recorded: each once, however often the message was delivered
 */
export function auditReceived(
  name: string,
  published: readonly string[],
  received: readonly string[],
): Check {
  const check = new CheckBuilder(name);
  const [sent, consumed] = [new Set(published), new Set(received)];
  check.expectEach(sent, consumed);
  check.expectOnly(sent, consumed, (id) => `${id} was received but never published`);
  return check.done(sent.size, consumed.size);
}

/**
 * Checks that every acknowledged operation is stored, and nothing that was never requested. The ids are
 * unique in the store, so duplicates are not checked.
 */
export function auditStored(
  name: string,
  operations: readonly Operation[],
  stored: readonly string[],
): Check {
  const check = new CheckBuilder(name);
  const acknowledged = operations.filter(({ acknowledgedAtMs }) => acknowledgedAtMs !== null);
  check.expectEach(
    acknowledged.map(({ id }) => id),
    new Set(stored),
  );
  check.expectOnly(new Set(operations.map(({ id }) => id)), stored, (id) => `never requested: ${id}`);
  return check.done(acknowledged.length, stored.length);
}

/** The first publication of each event, in the order of publication. */
export function firstPublished<T extends { readonly messageId: string }>(published: readonly T[]): T[] {
  const firsts = new Map<string, T>();
  for (const event of published) if (!firsts.has(event.messageId)) firsts.set(event.messageId, event);
  return [...firsts.values()];
}
