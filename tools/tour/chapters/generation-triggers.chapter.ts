import { same } from '../expectations.ts';
import type { Walk } from '../walk.ts';
import type { Travellers } from './tokens.chapter.ts';

interface Trigger {
  facilityId: number;
  jobName: string;
  schedule: string;
  timeZone: string;
  nextFireAtUtc: string | null;
}

/** The customers service activates business unit 77, and the task service learns of it over the main bus. */
export async function activationChapter(walk: Walk, { ivy }: Travellers): Promise<void> {
  walk.chapter('A business unit is activated');
  await change(walk, 'deactivate', 'First a clean slate: business unit 77 is deactivated');
  await triggersUntil(walk, ivy, 501, 0);
  await change(walk, 'activate', 'The customers service activates business unit 77');
  for (const facilityId of [501, 502]) await triggersUntil(walk, ivy, facilityId, 1);
}

async function change(walk: Walk, command: 'activate' | 'deactivate', title: string): Promise<void> {
  const url = `${walk.settings.customers}/business-units/77/${command}`;
  const explanation = 'The broker has confirmed IBusinessUnitChangeV1 on the main bus.';
  await walk.step(title, { method: 'POST', url, status: 202 }, explanation);
}

async function triggersUntil(walk: Walk, token: string, facilityId: number, count: 0 | 1): Promise<void> {
  await walk.stepUntil(
    `Facility ${facilityId} ${count === 1 ? 'gets its trigger' : 'has no trigger any more'}`,
    { url: `${walk.settings.task}/Triggers?facilityId=${facilityId}`, token },
    (response) => {
      const { triggers: found } = response.json as { triggers: Trigger[] };
      const facilities = found.map((trigger) => trigger.facilityId);
      same('the facilities with a trigger', facilities, Array<number>(count).fill(facilityId));
      if (count === 0) return 'Deactivation removed it.';
      same('the job', found[0]?.jobName, 'GenerateTaskInstancesSchedule');
      return `Job GenerateTaskInstancesSchedule, "${found[0]?.schedule}" in ${found[0]?.timeZone}, next fire ${found[0]?.nextFireAtUtc}.`;
    },
  );
}

const FACILITY = 503;
const SCHEDULE = '15 5 * * *';

/** A request over the scheduling bus and its response, through HTTP. */
export async function generationChapter(walk: Walk, { ivy, carl }: Travellers): Promise<void> {
  walk.chapter('A request over the bus');
  const { task } = walk.settings;
  const command = {
    method: 'POST',
    url: `${task}/commands/scheduleRecurringTaskInstanceGeneration`,
    token: ivy,
    body: { facilityId: FACILITY, schedule: SCHEDULE, timeZone: 'America/New_York' },
  } as const;
  const title = `Ivy wants instances for facility ${FACILITY} generated every day at 5:15 in New York`;
  await walk.step(title, command, (response) => {
    const { result, facilityId } = response.json as Record<string, unknown>;
    same('result', result, 'Succeeded');
    same('facilityId', facilityId, FACILITY);
    return 'Asked over the scheduling bus; the consumer replied Succeeded.';
  });
  const impossible = { ...command, body: { ...command.body, schedule: '15 25 * * *' }, status: 422 };
  await walk.step('She mistypes the hour', impossible, (response) => {
    same('result', (response.json as Record<string, unknown>)['result'], 'Failed');
    return 'The consumer replied Failed, with the reason.';
  });
  const shown = { url: `${task}/Triggers?facilityId=${FACILITY}`, token: ivy };
  await walk.step('The scheduler shows the trigger', shown, (response) => {
    const { triggers } = response.json as { triggers: Trigger[] };
    const schedules = triggers.map(({ schedule }) => schedule);
    same('its cron expressions', schedules, [SCHEDULE]);
    return `One trigger per facility, unharmed by the failed request; next fire ${triggers[0]?.nextFireAtUtc}.`;
  });
  const forbidden = { ...command, token: carl, status: 403 };
  await walk.step('Carl may not ask for this', forbidden, 'Scheduling commands are for internal partners.');
}
