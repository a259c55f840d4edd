import { Difference, grantedTokens, holds, readClaims, same, type WalkResponse } from '../expectations.ts';
import type { Walk } from '../walk.ts';
import type { Travellers } from './tokens.chapter.ts';

/** A task instance as the task service returns it. */
export interface Instance {
  taskInstanceId: string;
  scheduleId: string;
  facilityId: number;
  dueAtUtc: string;
  status: string;
}

/**
 * Creates a schedule, whose event passes over both buses until instances appear. Returns the first instance.
 */
export async function scheduleChapter(walk: Walk, { carl }: Travellers, run: string): Promise<Instance> {
  walk.chapter('A schedule and its event');
  const scheduleId = await createSchedule(walk, carl, run);
  await walk.stepUntil(
    'The scheduling service hears of it and passes it on',
    { url: `${walk.settings.scheduling}/events?scheduleId=${scheduleId}` },
    (response) => {
      const { scheduleCreated } = response.json as { scheduleCreated: unknown[] };
      same('how often it was passed on', scheduleCreated.length, 1);
      return 'ScheduleCreatedEvent came over the main bus; IScheduleCreatedEvent left on the scheduling bus.';
    },
  );
  const response = await walk.stepUntil(
    'The event comes back and the task service generates instances',
    { url: `${walk.settings.task}/Instances?scheduleId=${scheduleId}&pageSize=1000`, token: carl },
    (listed) => {
      const found = instancesOf(listed);
      holds('the number of instances', found.length > 0, 'some', found.length);
      same('their schedules', [...new Set(found.map((instance) => instance.scheduleId))], [scheduleId]);
      same('their due instants', new Set(found.map(({ dueAtUtc }) => dueAtUtc)).size, found.length);
      return `${found.length} workdays ahead, each once; the first is due ${found[0]?.dueAtUtc}.`;
    },
  );
  const [first] = instancesOf(response);
  if (first === undefined) throw new Difference('the instances', 'at least one', 'none');
  return first;
}

async function createSchedule(walk: Walk, carl: string, run: string): Promise<string> {
  const request = {
    method: 'POST',
    url: `${walk.settings.task}/Schedules`,
    token: carl,
    headers: { 'idempotency-key': `tour-${run}` },
    body: {
      facilityId: 501,
      name: `Check the boiler (tour ${run})`,
      schedule: '30 7 * * 1-5',
      timeZone: 'Europe/Berlin',
    },
    status: 201,
  } as const;
  const title = 'Carl wants the boiler of facility 501 checked on workdays at 7:30';
  const created = await walk.step(title, request, (response) => {
    same('facilityId', (response.json as Instance).facilityId, 501);
    const location = response.headers.get('location') ?? 'none';
    const isItsOwn = location.endsWith(scheduleIdOf(response));
    holds('the Location header', isItsOwn, 'the schedule’s address', location);
    return 'The schedule and its event are committed together.';
  });
  const scheduleId = scheduleIdOf(created);
  await walk.step('Carl’s browser sends it twice, with the same Idempotency-Key', request, (response) => {
    same('scheduleId', scheduleIdOf(response), scheduleId);
    return 'Still one schedule: the repetition gets the first response.';
  });
  return scheduleId;
}

export function instancesOf(response: WalkResponse): Instance[] {
  return (response.json as { instances: Instance[] }).instances;
}

function scheduleIdOf(response: WalkResponse): string {
  return (response.json as Instance).scheduleId;
}

const SERVICE_PROVIDER = 4;
const TESS = { personId: 1004, name: 'Tess Tech', persona: SERVICE_PROVIDER };

/** A technician completes an instance twice; the outside world is notified once. */
export async function completionChapter(walk: Walk, { taskInstanceId }: Instance): Promise<void> {
  walk.chapter('A task is completed');
  const request = {
    method: 'POST',
    url: `${walk.settings.task}/Instances/${taskInstanceId}/commands/complete`,
    token: await logInTess(walk),
    body: { notes: 'Pressure is fine.' },
  } as const;
  const said = 'Completed by her, and TaskInstanceCompletedEvent is on its way.';
  for (const [title, explanation] of [
    ['Tess was there, and completes the task', said],
    ['Tess presses the button again', 'The same response, and no second event.'],
  ] as const)
    await walk.step(title, request, (response) => {
      const { status, completedBy } = response.json as Record<string, unknown>;
      same('status', status, 'Completed');
      same('completedBy', completedBy, TESS);
      return explanation;
    });
  const heard = { url: `${walk.settings.receiver}/completions?taskInstanceId=${taskInstanceId}` };
  await walk.stepUntil('The receiver of completions hears of it', heard, (response) => {
    const { completions } = response.json as { completions: { record: Record<string, unknown> }[] };
    same('the number of completions heard', completions.length, 1);
    same('facilityId', completions[0]?.record['facilityId'], 501);
    same('completedBy', completions[0]?.record['completedBy'], TESS);
    return 'Exactly one event, in a ledger of another process.';
  });
}

async function logInTess(walk: Walk): Promise<string> {
  const { auth, password } = walk.settings;
  const request = {
    method: 'POST',
    url: `${auth}/auth/token/user`,
    body: { user: 'tess.tech', password },
  } as const;
  const response = await walk.step('Tess, a technician of provider 815, logs in', request, (granted) => {
    const claims = readClaims(grantedTokens(granted).accessToken);
    same('the claim personas', claims.personas, SERVICE_PROVIDER);
    same('the claim facilities', claims.facilities, [501]);
    return 'Two identity stores know her: her password and person come from one, provider and facility from the other.';
  });
  return grantedTokens(response).accessToken;
}
