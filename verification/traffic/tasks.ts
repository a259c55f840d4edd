import { randomUUID } from 'node:crypto';
import type { Outcome } from './caller.ts';
import type { LoadContext } from './context.ts';
import { type Life, operationOf, type ScheduleKind } from './journal.ts';

const SCHEDULE_NAME = 'Load';

/** A schedule that was acknowledged. */
export interface Created {
  readonly scheduleId: string;
  readonly idempotencyKey: string;
  readonly kind: ScheduleKind;
  readonly acknowledgedAtMs: number;
}

/** Creates a schedule, of any kind unless one is given; null when it was not acknowledged in time. */
export async function createSchedule(
  { caller, journal, kinds, random, urls, admin }: LoadContext,
  facilityId: number,
  { patienceMs, kind = random.pick(kinds) }: { patienceMs?: number; kind?: ScheduleKind } = {},
): Promise<Created | null> {
  const idempotencyKey = randomUUID();
  const url = `${urls.task}/Schedules`;
  const body = { facilityId, name: SCHEDULE_NAME, ...recurrenceOf(kind) };
  const { token } = admin;
  const call = { operation: 'POST schedule', url, token, idempotencyKey, body } as const;
  const outcome = await caller.persist(call, patienceMs);
  journal.schedules.push(operationOf(idempotencyKey, String(facilityId), outcome));
  journal.said.set(idempotencyKey, [kind]);
  if (outcome.response === null) return null;
  const { scheduleId } = JSON.parse(outcome.response.text) as { scheduleId: string };
  return { scheduleId, idempotencyKey, kind, acknowledgedAtMs: outcome.endedAtMs };
}

/** The members of a schedule that say when it is due. */
function recurrenceOf({ excludedDates: _, ...members }: ScheduleKind): Omit<ScheduleKind, 'excludedDates'> {
  return members;
}

/**
 * Ids of instances, the earliest first; null when that got no response. @param query e.g.
 * `scheduleId=…&pageSize=1`
 */
export async function listInstances(
  { caller, urls, admin }: LoadContext,
  query: string,
): Promise<string[] | null> {
  const url = `${urls.task}/Instances?${query}`;
  const { response } = await caller.persist({ operation: 'GET instances', url, token: admin.token });
  if (response === null) return null;
  const { instances } = JSON.parse(response.text) as { instances: { taskInstanceId: string }[] };
  return instances.map(({ taskInstanceId }) => taskInstanceId);
}

export async function completeInstance(
  { caller, journal, urls, admin }: LoadContext,
  facilityId: number,
  taskInstanceId: string,
  notes?: string,
): Promise<void> {
  const outcome = await caller.persist({
    operation: 'POST complete',
    url: `${urls.task}/Instances/${taskInstanceId}/commands/complete`,
    token: admin.token,
    ...(notes === undefined ? {} : { body: { notes } }),
  });
  journal.completions.push(operationOf(taskInstanceId, String(facilityId), outcome));
}

/** Schedules or unschedules the generation of a facility, by a request over the bus. @param id of the
 *  command, for
 *  the journal */
export async function commandGeneration(
  { caller, journal, urls, admin }: LoadContext,
  { id, facilityId, isScheduled }: { id: string; facilityId: number; isScheduled: boolean },
): Promise<void> {
  const verb = isScheduled ? 'schedule' : 'unschedule';
  const outcome = await caller.persist({
    operation: `POST ${verb}Recurring…`,
    url: `${urls.task}/commands/${verb}RecurringTaskInstanceGeneration`,
    token: admin.token,
    body: isScheduled ? { facilityId, schedule: '0 5 * * *', timeZone: 'UTC' } : { facilityId },
    // No reply came over the bus in time: as documented.
    retriedStatuses: [504],
  });
  journal.generationCommands.push(operationOf(id, String(facilityId), outcome));
}

/** Creates a schedule whose changes are noted from now on; null when it was not acknowledged. */
export async function beginLife(context: LoadContext, facilityId: number): Promise<Life | null> {
  const created = await createSchedule(context, facilityId);
  if (created === null) return null;
  const life: Life = {
    scheduleId: created.scheduleId,
    idempotencyKey: created.idempotencyKey,
    name: SCHEDULE_NAME,
    status: 'Active',
    events: [],
    uncertain: null,
    isOver: false,
    activeSinceMs: created.acknowledgedAtMs,
  };
  context.journal.lives.push(life);
  return life;
}

export async function renameSchedule(context: LoadContext, life: Life): Promise<void> {
  const name = randomUUID();
  const outcome = await patchSchedule(context, life, { name });
  noteChange(life, outcome, `ScheduleUpdatedEvent ${name}`, { name });
}

/** Gives it the recurrence of another schedule. */
export async function reschedule(context: LoadContext, life: Life): Promise<void> {
  const { journal, kinds, random } = context;
  const kind = random.pick(kinds);
  const said = journal.said.get(life.idempotencyKey) ?? [];
  const { calendarId = null, startDate = null, endDate = null, ...members } = recurrenceOf(kind);
  const outcome = await patchSchedule(context, life, { ...members, calendarId, startDate, endDate });
  // One that is so already is changed by nothing, and nobody is told.
  const event = said.at(-1) === kind ? null : `ScheduleUpdatedEvent ${life.name}`;
  noteChange(life, outcome, event, { activeSinceMs: outcome.endedAtMs });
  journal.said.set(life.idempotencyKey, [...said, kind]);
}

function patchSchedule({ caller, urls, admin }: LoadContext, life: Life, body: object): Promise<Outcome> {
  const url = `${urls.task}/Schedules/${life.scheduleId}`;
  return caller.persist({ operation: 'PATCH schedule', url, token: admin.token, body });
}

const COMMANDS = {
  pause: { status: 'Paused', event: 'SchedulePausedEvent' },
  resume: { status: 'Active', event: 'ScheduleResumedEvent' },
  remove: { status: 'Removed', event: 'ScheduleRemovedEvent' },
} as const;

export async function commandSchedule(
  { caller, urls, admin }: LoadContext,
  life: Life,
  verb: keyof typeof COMMANDS,
): Promise<void> {
  const { status, event } = COMMANDS[verb];
  const url = `${urls.task}/Schedules/${life.scheduleId}/commands/${verb}`;
  const outcome = await caller.persist({ operation: `POST ${verb}`, url, token: admin.token });
  const told = life.status === status ? null : `${event} ${life.name}`;
  noteChange(life, outcome, told, { status, activeSinceMs: outcome.endedAtMs });
  if (status === 'Removed') life.isOver = true;
}

/** Cancels the first instance that is still to come, if there is one. */
export async function cancelFirst(context: LoadContext, life: Life): Promise<void> {
  const { caller, urls, admin } = context;
  const pending = await listInstances(context, `scheduleId=${life.scheduleId}&status=Pending&pageSize=1`);
  const [first] = pending ?? [];
  if (first === undefined) return;
  const url = `${urls.task}/Instances/${first}/commands/cancel`;
  const outcome = await caller.persist({ operation: 'POST cancel', url, token: admin.token });
  noteChange(life, outcome, `TaskInstanceCancelledEvent ${first}`, {});
}

/** @param event null when the schedule is so already, which tells nobody */
function noteChange(
  life: Life,
  { response, mayComeLate }: Outcome,
  event: string | null,
  change: Partial<Pick<Life, 'name' | 'status' | 'activeSinceMs'>>,
): void {
  life.isOver ||= mayComeLate;
  if (response === null) life.uncertain = event;
  if (response === null || event === null) return;
  life.events.push(event);
  Object.assign(life, change);
}
