import { same } from '../difference.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk } from '../walk.ts';
import type { Travellers } from './tokens.chapter.ts';

const FACILITY = 503;
const SCHEDULE = '15 5 * * *';

/** A request over the scheduling bus and its answer, seen from HTTP. */
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
    (answer) => {
      same('the status', answer.status, 200);
      const result = answer.json as Record<string, unknown>;
      same('result', result['result'], 'Succeeded');
      same('facilityId', result['facilityId'], FACILITY);
      return 'Asked over the scheduling bus; the consumer answered Succeeded.';
    },
  );
  const impossible = { ...command, body: { ...command.body, schedule: '15 25 * * *' } };
  await walk.step('She mistypes the hour', impossible, (answer) => {
    same('the status', answer.status, 422);
    same('result', (answer.json as Record<string, unknown>)['result'], 'Failed');
    return 'The consumer answered Failed, with the reason.';
  });
  await triggerShown(walk, settings, ivy);
  await walk.step('Carl may not ask for this', { ...command, token: carl }, (answer) => {
    same('the status', answer.status, 403);
    return 'Scheduling commands are for internal partners.';
  });
}

async function triggerShown(walk: Walk, settings: TourSettings, token: string): Promise<void> {
  await walk.step(
    'The scheduler shows the trigger',
    { method: 'GET', url: `${settings.task}/Triggers?facilityId=${FACILITY}`, token },
    (answer) => {
      same('the status', answer.status, 200);
      const { triggers } = answer.json as { triggers: { schedule: string; nextFireAtUtc: string }[] };
      const schedules = triggers.map(({ schedule }) => schedule);
      same('its cron expressions', schedules, [SCHEDULE]);
      return `One trigger per facility, unharmed by the failed request; next fire ${triggers[0]?.nextFireAtUtc}.`;
    },
  );
}
