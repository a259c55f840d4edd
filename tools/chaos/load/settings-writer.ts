import { randomUUID } from 'node:crypto';
import { type LoadContext, repeatUntilStopped } from './caller.ts';
import { operationOf } from './journal.ts';

const SHARED_NAMES = 3;
/** The workers of the run write under this subsystem and nobody else does. */
export const SUBSYSTEM = 'chaos';

/** Writes settings: by turns one that all writers fight over, and one of its own, which it also reads back. */
export function writeSettings(context: LoadContext, worker: number): Promise<void> {
  const { caller, journal, random, urls, adminToken: token } = context;
  return repeatUntilStopped(context, async (count) => {
    const isOwn = count % 2 === 0;
    const name = isOwn ? `own-${worker}` : `shared-${random.integer(1, SHARED_NAMES)}`;
    const url = `${urls.settings}/platform/v1/subsystems/${SUBSYSTEM}/settings/${name}`;
    const value = `${worker}-${count}-${randomUUID()}`;
    const body = { settingValue: value };
    const idempotencyKey = randomUUID();
    const written = await caller.persist({ operation: 'PUT setting', url, token, idempotencyKey, body });
    journal.settings.push(operationOf(value, name, written));
    if (!isOwn || written.response === null) return;
    // Nobody else writes this setting, so whichever replica responds must know the last acknowledged value.
    const read = await caller.persist({ operation: 'GET setting value', url: `${url}/value`, token });
    if (read.response !== null && read.response.text !== JSON.stringify(value))
      journal.violations.push(`a read of ${name} did not return the value acknowledged before it`);
  });
}
