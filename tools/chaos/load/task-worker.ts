import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { PAUSE_MS, type LoadContext } from './context.ts';
import { operationOf } from './journal.ts';

/** Facilities of the task workers, one each, so that the order of a facility's events is the order of one worker's requests. */
const FIRST_FACILITY = 10_000;
/** More schedules than these without a completed instance, and the worker creates no others. */
const MAX_WAITING = 40;
const COMPLETIONS_PER_SCHEDULE = 2;

/** Creates schedules for a facility and completes the first instances of each. */
export async function createAndComplete(context: LoadContext, worker: number): Promise<void> {
  const facilityId = FIRST_FACILITY + worker;
  const waiting: string[] = [];
  while (!context.stop.aborted) {
    if (waiting.length < MAX_WAITING) {
      const scheduleId = await createSchedule(context, facilityId);
      if (scheduleId !== null) waiting.push(scheduleId);
    }
    const [oldest] = waiting;
    if (oldest !== undefined && (await completeFirst(context, facilityId, oldest))) waiting.shift();
    await delay(PAUSE_MS);
  }
}

/** Gives the schedule's id; null when it was not acknowledged in time. */
export async function createSchedule(
  context: LoadContext,
  facilityId: number,
  patienceMs?: number,
): Promise<string | null> {
  const { caller, journal, urls, adminToken } = context;
  const idempotencyKey = randomUUID();
  const call = {
    operation: 'POST schedule',
    method: 'POST',
    url: `${urls.task}/Schedules`,
    token: adminToken,
    idempotencyKey,
    body: { facilityId, name: 'Chaos', schedule: '0 6 * * *', timeZone: 'UTC' },
  } as const;
  const outcome = await caller.persist(call, patienceMs);
  const { answer } = outcome;
  const scheduleId = answer === null ? null : (JSON.parse(answer.text) as { scheduleId: string }).scheduleId;
  journal.schedules.push({ ...operationOf(idempotencyKey, String(facilityId), outcome), scheduleId });
  return scheduleId;
}

/** False while the schedule has no instances. */
async function completeFirst(context: LoadContext, facilityId: number, scheduleId: string): Promise<boolean> {
  const { caller, journal, urls, adminToken } = context;
  const url = `${urls.task}/Instances?scheduleId=${scheduleId}&pageSize=${COMPLETIONS_PER_SCHEDULE}`;
  const found = await caller.persist({ operation: 'GET instances', method: 'GET', url, token: adminToken });
  if (found.answer === null) return false;
  const { instances } = JSON.parse(found.answer.text) as { instances: { taskInstanceId: string }[] };
  for (const { taskInstanceId } of instances) {
    const outcome = await caller.persist({
      operation: 'POST complete',
      method: 'POST',
      url: `${urls.task}/Instances/${taskInstanceId}/commands/complete`,
      token: adminToken,
    });
    journal.completions.push(operationOf(taskInstanceId, String(facilityId), outcome));
  }
  return instances.length > 0;
}
