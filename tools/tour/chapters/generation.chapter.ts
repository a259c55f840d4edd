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
  const url = `${settings.task}/commands/scheduleRecurringTaskInstanceGeneration`;
  const body = { facilityId: FACILITY, schedule: SCHEDULE, timeZone: 'America/New_York' };
  await walk.step(
    `Ivy wants instances for facility ${FACILITY} generated every day at 5:15 in New York`,
    { method: 'POST', url, token: ivy, body },
    (answer) => {
      same('the status', answer.status, 200);
      const result = answer.json as Record<string, unknown>;
      same('result', result['result'], 'Succeeded');
      same('facilityId', result['facilityId'], FACILITY);
      return 'Asked over the scheduling bus; the consumer answered Succeeded.';
    },
  );
  await walk.step(
    'The scheduler shows the trigger',
    { method: 'GET', url: `${settings.task}/Triggers?facilityId=${FACILITY}`, token: ivy },
    (answer) => {
      same('the status', answer.status, 200);
      const { triggers } = answer.json as { triggers: { schedule: string; nextFireAtUtc: string }[] };
      same(
        'its cron expressions',
        triggers.map(({ schedule }) => schedule),
        [SCHEDULE],
      );
      return `One trigger per facility; it fires next at ${triggers[0]?.nextFireAtUtc}.`;
    },
  );
  await walk.step('Carl may not ask for this', { method: 'POST', url, token: carl, body }, (answer) => {
    same('the status', answer.status, 403);
    return 'Scheduling commands are for internal partners.';
  });
}
