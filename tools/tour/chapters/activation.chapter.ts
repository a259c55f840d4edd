import { same } from '../difference.ts';
import type { TourSettings } from '../addresses.ts';
import type { Answer, Walk } from '../walk.ts';
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
  await walk.step(title, request, (answer) => {
    same('the status', answer.status, 202);
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
    (answer) => {
      same('the status', answer.status, 200);
      const found = triggersOf(answer);
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

function triggersOf(answer: Answer): Trigger[] {
  return (answer.json as { triggers: Trigger[] }).triggers;
}
