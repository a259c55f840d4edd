import { randomUUID } from 'node:crypto';
import type { Outcome } from './caller.ts';
import type { LoadContext } from './context.ts';
import { type ChangedSchedule, operationOf, type ScheduleKind } from './journal.ts';

const SCHEDULE_NAME = 'Load';

/** A schedule whose creation was acknowledged. */
export interface Created {
  readonly scheduleId: string;
  readonly idempotencyKey: string;
  readonly kind: ScheduleKind;
  readonly acknowledgedAtMs: number;
}

/**
 * Creates a schedule, by default with a random recurrence. Null if the creation was not acknowledged in time.
 */
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
  journal.recurrences.set(idempotencyKey, [kind]);
  if (outcome.response === null) return null;
  const { scheduleId } = JSON.parse(outcome.response.text) as { scheduleId: string };
  return { scheduleId, idempotencyKey, kind, acknowledgedAtMs: outcome.endedAtMs };
}

/** The members of a request body that describe a recurrence. */
function recurrenceOf({ excludedDates: _, ...members }: ScheduleKind): Omit<ScheduleKind, 'excludedDates'> {
  return members;
}

/** Returns ids of instances, earliest first. Null if there was no response. @param query e.g. `pageSize=1` */
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

/**
 * Schedules or unschedules the generation of a facility. The service sends the command as a request over the
 * bus.
 * @param id of the command in the journal
 */
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
    // 504 is documented: no reply arrived over the bus in time.
    retriedStatuses: [504],
  });
  journal.generationCommands.push(operationOf(id, String(facilityId), outcome));
}

/** Creates a schedule and records its changes in the journal. Null if the creation was not acknowledged. */
export async function createChangedSchedule(
  context: LoadContext,
  facilityId: number,
): Promise<ChangedSchedule | null> {
  const created = await createSchedule(context, facilityId);
  if (created === null) return null;
  const schedule: ChangedSchedule = {
    scheduleId: created.scheduleId,
    idempotencyKey: created.idempotencyKey,
    name: SCHEDULE_NAME,
    status: 'Active',
    events: [],
    uncertainEvent: null,
    isClosed: false,
    activeSinceMs: created.acknowledgedAtMs,
  };
  context.journal.changedSchedules.push(schedule);
  return schedule;
}

export async function renameSchedule(context: LoadContext, schedule: ChangedSchedule): Promise<void> {
  const name = randomUUID();
  const outcome = await patchSchedule(context, schedule, { name });
  noteChange(schedule, outcome, `ScheduleUpdatedEvent ${name}`, { name });
}

/** Changes the schedule's recurrence to a random one. */
export async function reschedule(context: LoadContext, schedule: ChangedSchedule): Promise<void> {
  const { journal, kinds, random } = context;
  const kind = random.pick(kinds);
  const recurrences = journal.recurrences.get(schedule.idempotencyKey) ?? [];
  const { calendarId = null, startDate = null, endDate = null, ...members } = recurrenceOf(kind);
  const outcome = await patchSchedule(context, schedule, { ...members, calendarId, startDate, endDate });
  // The same recurrence again changes nothing and publishes no event.
  const event = recurrences.at(-1) === kind ? null : `ScheduleUpdatedEvent ${schedule.name}`;
  noteChange(schedule, outcome, event, { activeSinceMs: outcome.endedAtMs });
  journal.recurrences.set(schedule.idempotencyKey, [...recurrences, kind]);
}

function patchSchedule(
  { caller, urls, admin }: LoadContext,
  schedule: ChangedSchedule,
  body: object,
): Promise<Outcome> {
  const url = `${urls.task}/Schedules/${schedule.scheduleId}`;
  return caller.persist({ operation: 'PATCH schedule', url, token: admin.token, body });
}

const COMMANDS = {
  pause: { status: 'Paused', event: 'SchedulePausedEvent' },
  resume: { status: 'Active', event: 'ScheduleResumedEvent' },
  remove: { status: 'Removed', event: 'ScheduleRemovedEvent' },
} as const;

export async function commandSchedule(
  { caller, urls, admin }: LoadContext,
  schedule: ChangedSchedule,
  verb: keyof typeof COMMANDS,
): Promise<void> {
  const { status, event } = COMMANDS[verb];
  const url = `${urls.task}/Schedules/${schedule.scheduleId}/commands/${verb}`;
  const outcome = await caller.persist({ operation: `POST ${verb}`, url, token: admin.token });
  const expectedEvent = schedule.status === status ? null : `${event} ${schedule.name}`;
  noteChange(schedule, outcome, expectedEvent, { status, activeSinceMs: outcome.endedAtMs });
  if (status === 'Removed') schedule.isClosed = true;
}

/** Cancels the earliest pending instance, if there is one. */
export async function cancelFirst(context: LoadContext, schedule: ChangedSchedule): Promise<void> {
  const { caller, urls, admin } = context;
  const pending = await listInstances(context, `scheduleId=${schedule.scheduleId}&status=Pending&pageSize=1`);
  const [first] = pending ?? [];
  if (first === undefined) return;
  const url = `${urls.task}/Instances/${first}/commands/cancel`;
  const outcome = await caller.persist({ operation: 'POST cancel', url, token: admin.token });
  noteChange(schedule, outcome, `TaskInstanceCancelledEvent ${first}`, {});
}

/** Records a change in the journal. @param event null if the change has no effect and publishes no event */
function noteChange(
  schedule: ChangedSchedule,
  { response, mayComeLate }: Outcome,
  event: string | null,
  change: Partial<Pick<ChangedSchedule, 'name' | 'status' | 'activeSinceMs'>>,
): void {
  schedule.isClosed ||= mayComeLate;
  if (response === null) schedule.uncertainEvent = event;
  if (response === null || event === null) return;
  schedule.events.push(event);
  Object.assign(schedule, change);
}
