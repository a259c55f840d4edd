import { CheckBuilder, type Check } from './check.ts';

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
