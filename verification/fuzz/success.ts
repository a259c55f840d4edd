import type { Operation } from './fixtures.ts';

/** Operations that cannot succeed on the platform of a run, with the reason. */
export const CANNOT_SUCCEED: ReadonlyMap<string, string> = new Map([
  ['auth startSingleSignOn', 'no identity provider is configured'],
  ['auth completeSingleSignOn', 'no identity provider is configured'],
  ['auth completeAzureAdSignOn', 'no identity provider is configured'],
  ['auth exchangeSignOnCode', 'no identity provider is configured'],
  ['auth signInWithWindows', 'Windows authentication is off: it needs a Kerberos KDC'],
]);

/** The name of an operation in reports. */
export function nameOf({ service, id }: Pick<Operation, 'service' | 'id'>): string {
  return `${service} ${id}`;
}

/**
 * Finds operations that never succeeded in a whole run, because only their refusals were tested, and
 * operations that succeeded although they are listed as unable to. Returns the findings by operation.
 */
export function judgeSuccesses(
  operations: readonly string[],
  succeeded: ReadonlySet<string>,
  cannotSucceed: ReadonlyMap<string, string> = CANNOT_SUCCEED,
): Map<string, string> {
  const wrong = new Map<string, string>();
  for (const operation of operations) {
    const mayFail = cannotSucceed.has(operation);
    if (!mayFail && !succeeded.has(operation)) wrong.set(operation, 'never succeeded');
    if (mayFail && succeeded.has(operation))
      wrong.set(operation, 'succeeded, but is listed as one that cannot');
  }
  return wrong;
}
