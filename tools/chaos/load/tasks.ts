import { randomUUID } from 'node:crypto';
import type { TestPlatform } from '#platform/test-platform.ts';
import { type LoadContext, type Outcome, repeatUntilStopped } from './caller.ts';
import { type BusinessUnitChange, type Journal, type Life, operationOf } from './journal.ts';

/** Facilities of the task workers, one each, so that the order of a facility's events is the order of one worker's requests. */
const FIRST_FACILITY = 10_000;
/** A worker with so many schedules without a completed instance creates no more. */
const MAX_WAITING = 40;
const COMPLETIONS_PER_SCHEDULE = 2;

/** Creates schedules for a facility and completes the first instances of each. */
export function createAndComplete(context: LoadContext, worker: number): Promise<void> {
  const facilityId = FIRST_FACILITY + worker;
  const waiting: string[] = [];
  return repeatUntilStopped(context, async () => {
    const created = waiting.length < MAX_WAITING ? await createSchedule(context, facilityId) : null;
    if (created !== null) waiting.push(created);
    const [oldest] = waiting;
    if (oldest !== undefined && (await completeFirst(context, facilityId, oldest))) waiting.shift();
  });
}

/** Returns the schedule's id; null when it was not acknowledged in time. */
export async function createSchedule(
  { caller, journal, urls, adminToken: token }: LoadContext,
  facilityId: number,
  patienceMs?: number,
): Promise<string | null> {
  const idempotencyKey = randomUUID();
  const url = `${urls.task}/Schedules`;
  const body = { facilityId, name: 'Chaos', schedule: '0 6 * * *', timeZone: 'UTC' };
  const call = { operation: 'POST schedule', url, token, idempotencyKey, body } as const;
  const outcome = await caller.persist(call, patienceMs);
  journal.schedules.push(operationOf(idempotencyKey, String(facilityId), outcome));
  if (outcome.response === null) return null;
  return (JSON.parse(outcome.response.text) as { scheduleId: string }).scheduleId;
}

/** False while the schedule has no instances. */
async function completeFirst(
  { caller, journal, urls, adminToken: token }: LoadContext,
  facilityId: number,
  scheduleId: string,
): Promise<boolean> {
  const url = `${urls.task}/Instances?scheduleId=${scheduleId}&pageSize=${COMPLETIONS_PER_SCHEDULE}`;
  const { response } = await caller.persist({ operation: 'GET instances', url, token });
  if (response === null) return false;
  const { instances } = JSON.parse(response.text) as { instances: { taskInstanceId: string }[] };
  for (const { taskInstanceId } of instances) {
    const complete = `${urls.task}/Instances/${taskInstanceId}/commands/complete`;
    const outcome = await caller.persist({ operation: 'POST complete', url: complete, token });
    journal.completions.push(operationOf(taskInstanceId, String(facilityId), outcome));
  }
  return instances.length > 0;
}

const FIRST_COMMANDED_FACILITY = 20_000;
const BETWEEN_COMMANDS_MS = 300;

/** Schedules and unschedules a facility by turns, by requests over the bus. */
export function commandGeneration(context: LoadContext, worker: number): Promise<void> {
  const { caller, journal, urls, adminToken: token } = context;
  const facilityId = FIRST_COMMANDED_FACILITY + worker;
  const command = async (count: number): Promise<void> => {
    const isScheduled = count % 2 === 0;
    const verb = isScheduled ? 'schedule' : 'unschedule';
    const outcome = await caller.persist({
      operation: `POST ${verb}Recurring…`,
      url: `${urls.task}/commands/${verb}RecurringTaskInstanceGeneration`,
      token,
      body: isScheduled ? { facilityId, schedule: '0 5 * * *', timeZone: 'UTC' } : { facilityId },
      // No reply came over the bus in time: as documented.
      retriedStatuses: [504],
    });
    journal.generationCommands.push(operationOf(`${facilityId}-${count}`, String(facilityId), outcome));
  };
  return repeatUntilStopped(context, command, BETWEEN_COMMANDS_MS);
}

/** The business units that the customers service knows. */
const BUSINESS_UNITS = [77, 78];
/** Facilities of a unit in this run: a thousand times its number, and the following. */
const FACILITIES_PER_UNIT = 10;
const BETWEEN_CHANGES_MS = 400;
const REPEAT_RATE = 0.2;

/**
 * Activates and deactivates business units, and now and then has a change arrive twice.
 * @param republish publishes a message again under its own id, as a publisher does whose confirm got lost
 */
export function changeBusinessUnits(
  context: LoadContext,
  republish: (change: BusinessUnitChange) => Promise<void>,
): Promise<void> {
  const { caller, journal, random, urls } = context;
  const change = async (count: number): Promise<void> => {
    const businessUnitId = BUSINESS_UNITS[count % BUSINESS_UNITS.length] ?? 77;
    const verb = random.chance(0.5) ? 'activate' : 'deactivate';
    const facilityIds = Array.from(
      { length: FACILITIES_PER_UNIT },
      (_, index) => businessUnitId * 1_000 + index,
    );
    // Not repeated: the customers service knows no idempotency keys, and a second change is a change of its own.
    const response = await caller.attempt({
      operation: `POST ${verb}`,
      url: `${urls.customers}/business-units/${businessUnitId}/${verb}`,
      body: { facilityIds },
    });
    if (response?.status !== 202) return;
    const acknowledged = JSON.parse(response.text) as BusinessUnitChange;
    journal.businessUnitChanges.push(acknowledged);
    if (random.chance(REPEAT_RATE)) await republish(acknowledged);
  };
  return repeatUntilStopped(context, change, BETWEEN_CHANGES_MS);
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
  await platform.query('task', `UPDATE task.triggers SET state = 'PAUSED'`);
}

const FIRST_CHANGED_FACILITY = 30_000;
/** Changes of a schedule before its caller turns to the next one. */
const CHANGES = 8;
/** Probability (0–1) that a change is a removal, the last one. */
const REMOVAL_RATE = 0.05;
const CHANGE_KINDS = ['update', 'pause', 'resume', 'cancel'] as const;

const COMMANDS = {
  pause: { status: 'Paused', event: 'SchedulePausedEvent' },
  resume: { status: 'Active', event: 'ScheduleResumedEvent' },
  remove: { status: 'Removed', event: 'ScheduleRemovedEvent' },
} as const;

/** Creates a schedule and changes it some times, then the next one; a facility for each worker. */
export function liveSchedules(context: LoadContext, worker: number): Promise<void> {
  return repeatUntilStopped(context, async () => {
    const scheduleId = await createSchedule(context, FIRST_CHANGED_FACILITY + worker);
    if (scheduleId === null) return;
    const life: Life = {
      scheduleId,
      name: 'Chaos',
      status: 'Active',
      events: [],
      uncertain: null,
      isOver: false,
    };
    context.journal.lives.push(life);
    for (let count = 0; count < CHANGES && !life.isOver && !context.stop.aborted; count += 1)
      await changeOnce(context, life);
  });
}

function changeOnce(context: LoadContext, life: Life): Promise<void> {
  const { random } = context;
  if (random.chance(REMOVAL_RATE)) return commandSchedule(context, life, 'remove');
  const kind = CHANGE_KINDS[Math.floor(random.next() * CHANGE_KINDS.length)] ?? 'update';
  if (kind === 'update') return renameSchedule(context, life);
  return kind === 'cancel' ? cancelFirst(context, life) : commandSchedule(context, life, kind);
}

async function renameSchedule({ caller, urls, adminToken: token }: LoadContext, life: Life): Promise<void> {
  const name = randomUUID();
  const outcome = await caller.persist({
    operation: 'PATCH schedule',
    url: `${urls.task}/Schedules/${life.scheduleId}`,
    token,
    body: { name },
  });
  noteChange(life, outcome, `ScheduleUpdatedEvent ${name}`, { name });
}

async function commandSchedule(
  { caller, urls, adminToken: token }: LoadContext,
  life: Life,
  verb: keyof typeof COMMANDS,
): Promise<void> {
  const { status, event } = COMMANDS[verb];
  const url = `${urls.task}/Schedules/${life.scheduleId}/commands/${verb}`;
  const outcome = await caller.persist({ operation: `POST ${verb}`, url, token });
  noteChange(life, outcome, life.status === status ? null : `${event} ${life.name}`, { status });
  if (status === 'Removed') life.isOver = true;
}

/** Cancels the first instance that is still to come, if there is one. */
async function cancelFirst({ caller, urls, adminToken: token }: LoadContext, life: Life): Promise<void> {
  const url = `${urls.task}/Instances?scheduleId=${life.scheduleId}&status=Pending&pageSize=1`;
  const { response } = await caller.persist({ operation: 'GET instances', url, token });
  if (response === null) return;
  const [first] = (JSON.parse(response.text) as { instances: { taskInstanceId: string }[] }).instances;
  if (first === undefined) return;
  const cancel = `${urls.task}/Instances/${first.taskInstanceId}/commands/cancel`;
  const outcome = await caller.persist({ operation: 'POST cancel', url: cancel, token });
  noteChange(life, outcome, `TaskInstanceCancelledEvent ${first.taskInstanceId}`, {});
}

/** @param event null when the schedule is so already, which tells nobody */
function noteChange(
  life: Life,
  { response, mayComeLate }: Outcome,
  event: string | null,
  change: Partial<Pick<Life, 'name' | 'status'>>,
): void {
  life.isOver ||= mayComeLate;
  if (response === null) life.uncertain = event;
  if (response === null || event === null) return;
  life.events.push(event);
  Object.assign(life, change);
}
