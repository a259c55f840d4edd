import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { PAUSE_MS, type LoadContext } from './caller.ts';
import { operationOf } from './journal.ts';

const SHARED_NAMES = 3;
/** The workers of the run write under this subsystem and nobody else does. */
export const SUBSYSTEM = 'chaos';

/** Writes settings: by turns one that all writers fight over, and one of its own, which it also reads back. */
export async function writeSettings(context: LoadContext, worker: number): Promise<void> {
  for (let count = 0; !context.stop.aborted; count += 1) {
    const isOwn = count % 2 === 0;
    const name = isOwn ? `own-${worker}` : `shared-${context.random.integer(1, SHARED_NAMES)}`;
    const isAcknowledged = await write(context, name, `${worker}-${count}-${randomUUID()}`);
    if (isOwn && isAcknowledged) await readBack(context, name);
    await delay(PAUSE_MS);
  }
}

async function write(
  { caller, journal, urls, adminToken }: LoadContext,
  name: string,
  value: string,
): Promise<boolean> {
  const outcome = await caller.persist({
    operation: 'PUT setting',
    method: 'PUT',
    url: settingUrl(urls.settings, name),
    token: adminToken,
    idempotencyKey: randomUUID(),
    body: { settingValue: value },
  });
  journal.settings.push(operationOf(value, name, outcome));
  return outcome.answer !== null;
}

/** Nobody else writes this setting, so whichever replica answers must know the last acknowledged value. */
async function readBack({ caller, journal, urls, adminToken }: LoadContext, name: string): Promise<void> {
  const call = {
    operation: 'GET setting value',
    method: 'GET',
    url: `${settingUrl(urls.settings, name)}/value`,
    token: adminToken,
  } as const;
  const { answer } = await caller.persist(call);
  if (answer === null) return;
  journal.checkedReads += 1;
  const last = journal.settings.findLast(({ group }) => group === name);
  if (last !== undefined && answer.text !== JSON.stringify(last.id))
    journal.violations.push(`a read of ${name} did not give the value acknowledged before it`);
}

function settingUrl(base: string, name: string): string {
  return `${base}/platform/v1/subsystems/${SUBSYSTEM}/settings/${name}`;
}
