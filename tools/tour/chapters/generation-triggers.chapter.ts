import { same, type WalkResponse } from '../expectations.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk } from '../walk.ts';
import type { Travellers } from './tokens.chapter.ts';

const FACILITIES = [501, 502] as const;
/** Two hops over a broker; generous, because the first delivery may meet a consumer that is just connecting. */
const EVENT_TIMEOUT_MS = 10_000;

/** The customers service activates business unit 77; the task service hears of it over the main bus. */
export async function activationChapter(
  walk: Walk,
  settings: TourSettings,
  { ivy }: Travellers,
): Promise<void> {
  walk.chapter('A business unit is activated');
  await change(walk, settings, 'deactivate', 'First a clean slate: business unit 77 is deactivated');
  await triggersUntil(walk, settings, ivy, 501, 0);
  await change(walk, settings, 'activate', 'The customers service activates business unit 77');
  for (const facilityId of FACILITIES) await triggersUntil(walk, settings, ivy, facilityId, 1);
}

async function change(
  walk: Walk,
  settings: TourSettings,
  command: 'activate' | 'deactivate',
  title: string,
): Promise<void> {
  const request = { method: 'POST', url: `${settings.customers}/business-units/77/${command}` } as const;
  await walk.step(title, request, (response) => {
    same('the status', response.status, 202);
    return 'The broker has confirmed IBusinessUnitChangeV1 on the main bus.';
  });
}

async function triggersUntil(
  walk: Walk,
  settings: TourSettings,
  token: string,
  facilityId: number,
  count: 0 | 1,
): Promise<void> {
  await walk.stepUntil(
    `Facility ${facilityId} ${count === 1 ? 'gets its trigger' : 'has no trigger any more'}`,
    { method: 'GET', url: `${settings.task}/Triggers?facilityId=${facilityId}`, token },
    (response) => {
      same('the status', response.status, 200);
      const found = triggersOf(response);
      same(
        'the facilities with a trigger',
        found.map((trigger) => trigger.facilityId),
        Array<number>(count).fill(facilityId),
      );
      if (count === 0) return 'Deactivation removed it.';
      same('the job', found[0]?.jobName, 'GenerateTaskInstancesSchedule');
      return `Job GenerateTaskInstancesSchedule, "${found[0]?.schedule}" in ${found[0]?.timeZone}, next fire ${found[0]?.nextFireAtUtc}.`;
    },
    EVENT_TIMEOUT_MS,
  );
}

interface Trigger {
  facilityId: number;
  jobName: string;
  schedule: string;
  timeZone: string;
  nextFireAtUtc: string | null;
}

function triggersOf(response: WalkResponse): Trigger[] {
  return (response.json as { triggers: Trigger[] }).triggers;
}

const FACILITY = 503;
const SCHEDULE = '15 5 * * *';

/** A request over the scheduling bus and its response, seen from HTTP. */
export async function generationChapter(
  walk: Walk,
  settings: TourSettings,
  { ivy, carl }: Travellers,
): Promise<void> {
  walk.chapter('A request over the bus');
  const command = {
    method: 'POST',
    url: `${settings.task}/commands/scheduleRecurringTaskInstanceGeneration`,
    token: ivy,
    body: { facilityId: FACILITY, schedule: SCHEDULE, timeZone: 'America/New_York' },
  } as const;
  await walk.step(
    `Ivy wants instances for facility ${FACILITY} generated every day at 5:15 in New York`,
    command,
    (response) => {
      same('the status', response.status, 200);
      const result = response.json as Record<string, unknown>;
      same('result', result['result'], 'Succeeded');
      same('facilityId', result['facilityId'], FACILITY);
      return 'Asked over the scheduling bus; the consumer replied Succeeded.';
    },
  );
  const impossible = { ...command, body: { ...command.body, schedule: '15 25 * * *' } };
  await walk.step('She mistypes the hour', impossible, (response) => {
    same('the status', response.status, 422);
    same('result', (response.json as Record<string, unknown>)['result'], 'Failed');
    return 'The consumer replied Failed, with the reason.';
  });
  await triggerShown(walk, settings, ivy);
  await walk.step('Carl may not ask for this', { ...command, token: carl }, (response) => {
    same('the status', response.status, 403);
    return 'Scheduling commands are for internal partners.';
  });
}

async function triggerShown(walk: Walk, settings: TourSettings, token: string): Promise<void> {
  await walk.step(
    'The scheduler shows the trigger',
    { method: 'GET', url: `${settings.task}/Triggers?facilityId=${FACILITY}`, token },
    (response) => {
      same('the status', response.status, 200);
      const { triggers } = response.json as { triggers: { schedule: string; nextFireAtUtc: string }[] };
      const schedules = triggers.map(({ schedule }) => schedule);
      same('its cron expressions', schedules, [SCHEDULE]);
      return `One trigger per facility, unharmed by the failed request; next fire ${triggers[0]?.nextFireAtUtc}.`;
    },
  );
}
