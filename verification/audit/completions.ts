import type { Operation } from '#verification/traffic/journal.ts';
import type { PublishedMessage } from '#verification/traffic/published-messages.ts';
import { type Check, CheckBuilder } from './check.ts';
import { toEpochMs } from './instances.ts';
import type { StoredWrite } from './messages.ts';

/** A completed instance. Instants in ms since 1970. */
export interface StoredCompletion extends StoredWrite {
  readonly completedAtMs: number;
  readonly dueAtMs: number;
}

/**
 * Checks that each completion is dated between its request and its acknowledgement, and that its event has
 * the stored instants.
 * @param published `TaskInstanceCompletedEvent`s
 * @param clocks the end of the drain, and the maximum difference between the caller's and the database's
 * clock
 */
export function auditCompletionInstants(
  operations: readonly Operation[],
  stored: readonly StoredCompletion[],
  published: readonly PublishedMessage[],
  { endedAtMs, toleranceMs }: { endedAtMs: number; toleranceMs: number },
): Check {
  const check = new CheckBuilder('completions: dated within their request, also in their event');
  const requested = new Map(operations.map((operation) => [operation.id, operation]));
  for (const { id, completedAtMs } of stored) {
    const operation = requested.get(id);
    // Another check reports completions that were never requested.
    if (operation === undefined) continue;
    const { invokedAtMs, acknowledgedAtMs } = operation;
    const latestMs = acknowledgedAtMs === null ? endedAtMs : toEpochMs(acknowledgedAtMs);
    if (completedAtMs < toEpochMs(invokedAtMs) - toleranceMs)
      check.wrong(`${id} was completed at ${textOf(completedAtMs)}, before it was requested`);
    if (completedAtMs > latestMs + toleranceMs)
      check.wrong(`${id} was completed at ${textOf(completedAtMs)}, after it was acknowledged`);
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
        check.wrong(`the event of ${id} has ${member} ${String(message[member])} instead of ${textOf(atMs)}`);
  }
  return check.done(stored.length, published.length);
}

function textOf(atMs: number): string {
  return new Date(atMs).toISOString();
}
