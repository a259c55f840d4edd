import type { Operation } from '#verification/traffic/journal.ts';
import type { PublishedMessage } from '#verification/traffic/published-messages.ts';
import { type Check, CheckBuilder } from './check.ts';
import { everybodysMs } from './instances.ts';
import type { StoredWrite } from './messages.ts';

/** A completed instance; instants in ms since 1970. */
export interface StoredCompletion extends StoredWrite {
  readonly completedAtMs: number;
  readonly dueAtMs: number;
}

/**
 * Each instance was completed between the request and its acknowledgement, and its event has the instants
 * that are stored.
 * @param published `TaskInstanceCompletedEvent`s
 * @param clocks when nothing more was under way, and how far the caller's and the database's clock may be
 * apart
 */
export function auditCompletionInstants(
  operations: readonly Operation[],
  stored: readonly StoredCompletion[],
  published: readonly PublishedMessage[],
  { endedAtMs, toleranceMs }: { endedAtMs: number; toleranceMs: number },
): Check {
  const check = new CheckBuilder('completions: dated within their request, in the event too');
  const asked = new Map(operations.map((operation) => [operation.id, operation]));
  for (const { id, completedAtMs } of stored) {
    const operation = asked.get(id);
    // Another check finds a completion that nobody asked for.
    if (operation === undefined) continue;
    const { invokedAtMs, acknowledgedAtMs } = operation;
    const latestMs = acknowledgedAtMs === null ? endedAtMs : everybodysMs(acknowledgedAtMs);
    if (completedAtMs < everybodysMs(invokedAtMs) - toleranceMs)
      check.wrong(`${id} was completed at ${textOf(completedAtMs)}, before anybody asked for it`);
    if (completedAtMs > latestMs + toleranceMs)
      check.wrong(`${id} was completed at ${textOf(completedAtMs)}, after that was acknowledged`);
  }
  const instances = new Map(stored.map((completion) => [completion.id, completion]));
  for (const { message } of published) {
    const id = String(message['taskInstanceId']);
    const found = instances.get(id);
    if (found === undefined) continue;
    for (const [member, atMs] of [
      ['completedAtUtc', found.completedAtMs],
      ['dueAtUtc', found.dueAtMs],
    ] as const)
      if (Date.parse(String(message[member])) !== atMs)
        check.wrong(`the event of ${id} has ${member} ${String(message[member])}, stored is ${textOf(atMs)}`);
  }
  return check.done(stored.length, published.length);
}

function textOf(atMs: number): string {
  return new Date(atMs).toISOString();
}
