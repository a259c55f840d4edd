import { randomUUID } from 'node:crypto';
import { type LoadContext, type Outcome, repeatUntilStopped } from './caller.ts';
import type { Life } from './journal.ts';
import { createSchedule } from './tasks.ts';

const FIRST_FACILITY = 30_000;
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
    const scheduleId = await createSchedule(context, FIRST_FACILITY + worker);
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
  if (random.chance(REMOVAL_RATE)) return command(context, life, 'remove');
  const kind = CHANGE_KINDS[Math.floor(random.next() * CHANGE_KINDS.length)] ?? 'update';
  if (kind === 'update') return update(context, life);
  return kind === 'cancel' ? cancelFirst(context, life) : command(context, life, kind);
}

async function update({ caller, urls, adminToken: token }: LoadContext, life: Life): Promise<void> {
  const name = randomUUID();
  const outcome = await caller.persist({
    operation: 'PATCH schedule',
    url: `${urls.task}/Schedules/${life.scheduleId}`,
    token,
    body: { name },
  });
  note(life, outcome, `ScheduleUpdatedEvent ${name}`, { name });
}

async function command(
  { caller, urls, adminToken: token }: LoadContext,
  life: Life,
  verb: keyof typeof COMMANDS,
): Promise<void> {
  const { status, event } = COMMANDS[verb];
  const url = `${urls.task}/Schedules/${life.scheduleId}/commands/${verb}`;
  const outcome = await caller.persist({ operation: `POST ${verb}`, url, token });
  note(life, outcome, life.status === status ? null : `${event} ${life.name}`, { status });
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
  note(life, outcome, `TaskInstanceCancelledEvent ${first.taskInstanceId}`, {});
}

/** @param event null when the schedule is so already, which tells nobody */
function note(
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
