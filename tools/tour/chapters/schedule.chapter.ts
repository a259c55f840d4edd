import { Difference, holds, same, type WalkResponse } from '../expectations.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk } from '../walk.ts';
import type { Travellers } from './tokens.chapter.ts';

const EVENT_TIMEOUT_MS = 10_000;

/** A task instance as the task service shows it. */
export interface Instance {
  taskInstanceId: string;
  scheduleId: string;
  facilityId: number;
  dueAtUtc: string;
  status: string;
}

/** A schedule is created, its event goes round over both buses, and instances appear. Gives the first of them. */
export async function scheduleChapter(
  walk: Walk,
  settings: TourSettings,
  { carl }: Travellers,
  run: string,
): Promise<Instance> {
  walk.chapter('A schedule and its event');
  const scheduleId = await createSchedule(walk, settings, carl, run);
  await eventHeard(walk, settings, scheduleId);
  return instancesAppear(walk, settings, carl, scheduleId);
}

async function createSchedule(
  walk: Walk,
  settings: TourSettings,
  carl: string,
  run: string,
): Promise<string> {
  const request = {
    method: 'POST',
    url: `${settings.task}/Schedules`,
    token: carl,
    headers: { 'idempotency-key': `tour-${run}` },
    body: {
      facilityId: 501,
      name: `Check the boiler (tour ${run})`,
      schedule: '30 7 * * 1-5',
      timeZone: 'Europe/Berlin',
    },
  } as const;
  const title = 'Carl wants the boiler of facility 501 checked on workdays at 7:30';
  const created = await walk.step(title, request, (response) => {
    same('the status', response.status, 201);
    same('facilityId', (response.json as Instance).facilityId, 501);
    const location = response.headers.get('location') ?? 'none';
    holds(
      'the Location header',
      location.endsWith(scheduleIdOf(response)),
      'the schedule’s address',
      location,
    );
    return 'The schedule and its event are committed together.';
  });
  const scheduleId = scheduleIdOf(created);
  await walk.step('Carl’s browser sends it twice, with the same Idempotency-Key', request, (response) => {
    same('the status', response.status, 201);
    same('scheduleId', scheduleIdOf(response), scheduleId);
    return 'Still one schedule: the repetition gets the first response.';
  });
  return scheduleId;
}

async function eventHeard(walk: Walk, settings: TourSettings, scheduleId: string): Promise<void> {
  await walk.stepUntil(
    'The scheduling service hears of it and passes it on',
    { method: 'GET', url: `${settings.scheduling}/events?scheduleId=${scheduleId}` },
    (response) => {
      same('the status', response.status, 200);
      const { scheduleCreated } = response.json as { scheduleCreated: unknown[] };
      same('how often it was passed on', scheduleCreated.length, 1);
      return 'ScheduleCreatedEvent came over the main bus; IScheduleCreatedEvent left on the scheduling bus.';
    },
    EVENT_TIMEOUT_MS,
  );
}

async function instancesAppear(
  walk: Walk,
  settings: TourSettings,
  carl: string,
  scheduleId: string,
): Promise<Instance> {
  const response = await walk.stepUntil(
    'The event comes back and the task service generates instances',
    { method: 'GET', url: `${settings.task}/Instances?scheduleId=${scheduleId}&pageSize=1000`, token: carl },
    (listed) => {
      same('the status', listed.status, 200);
      const found = instancesOf(listed);
      holds('the number of instances', found.length > 0, 'some', found.length);
      same('their schedules', [...new Set(found.map((instance) => instance.scheduleId))], [scheduleId]);
      same('their due instants', new Set(found.map(({ dueAtUtc }) => dueAtUtc)).size, found.length);
      return `${found.length} workdays ahead, each once; the first is due ${found[0]?.dueAtUtc}.`;
    },
    EVENT_TIMEOUT_MS,
  );
  const [first] = instancesOf(response);
  if (first === undefined) throw new Difference('the instances', 'at least one', 'none');
  return first;
}

function instancesOf(response: WalkResponse): Instance[] {
  return (response.json as { instances: Instance[] }).instances;
}

function scheduleIdOf(response: WalkResponse): string {
  return (response.json as Instance).scheduleId;
}
