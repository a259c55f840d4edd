import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestPlatform } from '#platform/test-platform.ts';
import { type LoadContext, PAUSE_MS } from './caller.ts';
import { type BusinessUnitChange, type Journal, operationOf } from './journal.ts';

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

const FIRST_COMMANDED_FACILITY = 20_000;
const BETWEEN_COMMANDS_MS = 300;

/** Schedules and unschedules a facility by turns, by requests over the bus. */
export async function commandGeneration(context: LoadContext, worker: number): Promise<void> {
  const { caller, journal, urls, adminToken, stop } = context;
  const facilityId = FIRST_COMMANDED_FACILITY + worker;
  for (let count = 1; !stop.aborted; count += 1) {
    const wanted = count % 2 === 1;
    const command = wanted ? 'schedule' : 'unschedule';
    const outcome = await caller.persist({
      operation: `POST ${command}Recurring…`,
      method: 'POST',
      url: `${urls.task}/commands/${command}RecurringTaskInstanceGeneration`,
      token: adminToken,
      body: wanted ? { facilityId, schedule: '0 5 * * *', timeZone: 'UTC' } : { facilityId },
      // No answer came over the bus in time: as documented.
      retriedStatuses: [504],
    });
    const id = `${facilityId}-${count}`;
    journal.generationCommands.push({
      ...operationOf(id, String(facilityId), outcome),
      wanted,
      unanswered: outcome.unanswered,
    });
    await delay(BETWEEN_COMMANDS_MS);
  }
}

/** The business units that the customers service knows. */
const BUSINESS_UNITS = [77, 78];
/** Facilities of a unit in this run: its number times this, and the following. */
const FACILITIES_PER_UNIT = 10;
const BETWEEN_CHANGES_MS = 400;
const REPEAT_RATE = 0.2;

/** Publishes a message again under its own id, as a publisher does whose confirm got lost. */
export type Republish = (change: BusinessUnitChange) => Promise<void>;

/** Activates and deactivates business units, and now and then has a change arrive twice. */
export async function changeBusinessUnits(context: LoadContext, republish: Republish): Promise<void> {
  const { caller, journal, random, stop, urls } = context;
  for (let count = 0; !stop.aborted; count += 1) {
    const businessUnitId = BUSINESS_UNITS[count % BUSINESS_UNITS.length] ?? 77;
    const command = random.chance(0.5) ? 'activate' : 'deactivate';
    const facilityIds = Array.from(
      { length: FACILITIES_PER_UNIT },
      (_, index) => businessUnitId * 1_000 + index,
    );
    // Not repeated: the customers service knows no idempotency keys, and a second change is a change of its own.
    const answer = await caller.attempt({
      operation: `POST ${command}`,
      method: 'POST',
      url: `${urls.customers}/business-units/${businessUnitId}/${command}`,
      body: { facilityIds },
    });
    if (answer?.status === 202) {
      const change = JSON.parse(answer.text) as BusinessUnitChange;
      journal.businessUnitChanges.push(change);
      if (random.chance(REPEAT_RATE)) await republish(change);
    }
    await delay(BETWEEN_CHANGES_MS);
  }
}

export const FIRST_PLANTED_FACILITY = 100_000;
const OCCURRENCES_DUE = 8;

/** The columns of a trigger as the service's own scheduling would have filled them. */
const PLANT = `
  INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
  SELECT facility_id, 'facility-' || facility_id, 'TaskInstanceGeneration', 'GenerateTaskInstancesSchedule', '* * * * *', 'UTC',
    date_trunc('minute', now()) - $3 * interval '1 minute'
  FROM generate_series($1::bigint, $1::bigint + $2 - 1) AS facility_id
  RETURNING facility_id::int AS "facilityId", next_fire_at AS "nextFireAt"`;

/**
 * Puts triggers with several occurrences already due into the trigger store, because cron's minutes are far apart for a run of minutes.
 * From then on they fire like any other, every minute.
 */
export async function plantTriggers(platform: TestPlatform, journal: Journal, count: number): Promise<void> {
  const first = FIRST_PLANTED_FACILITY + journal.planted.length;
  const rows = await platform.query<{ facilityId: number; nextFireAt: Date }>('task', [
    PLANT,
    [first, count, OCCURRENCES_DUE - 1],
  ]);
  for (const { facilityId, nextFireAt } of rows)
    journal.planted.push({ facilityId, firstDueAtMs: nextFireAt.getTime() });
}

/** Ends the fires of every trigger; the last ones are still on their way. */
export async function pauseTriggers(platform: TestPlatform): Promise<void> {
  await platform.query('task', `UPDATE task.triggers SET state = 'PAUSED', paused_at = now()`);
}
