import { same } from '../difference.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk } from '../walk.ts';
import type { Instance } from './schedule.chapter.ts';
import type { Travellers } from './tokens.chapter.ts';

const EVENT_TIMEOUT_MS = 10_000;

/** One instance is completed, twice, and the outside world hears of it, once. */
export async function completionChapter(
  walk: Walk,
  settings: TourSettings,
  { carl }: Travellers,
  instance: Instance,
): Promise<void> {
  walk.chapter('A task is completed');
  const { taskInstanceId } = instance;
  const request = {
    method: 'POST',
    url: `${settings.task}/Instances/${taskInstanceId}/commands/complete`,
    token: carl,
    body: { notes: 'Pressure is fine.' },
  } as const;
  for (const [title, explanation] of [
    ['Carl completes it', 'Completed, and TaskInstanceCompletedEvent is on its way.'],
    ['Carl presses the button again', 'The same answer, and no second event.'],
  ] as const) {
    await walk.step(title, request, (answer) => {
      same('the status', answer.status, 200);
      same('status', (answer.json as Instance).status, 'Completed');
      return explanation;
    });
  }
  await walk.stepUntil(
    'The receiver of completions hears of it',
    { method: 'GET', url: `${settings.receiver}/completions?taskInstanceId=${taskInstanceId}` },
    (answer) => {
      same('the status', answer.status, 200);
      const { completions } = answer.json as { completions: { record: Record<string, unknown> }[] };
      same('the number of completions heard', completions.length, 1);
      same('facilityId', completions[0]?.record['facilityId'], 501);
      return 'Exactly one event, in a ledger of another process.';
    },
    EVENT_TIMEOUT_MS,
  );
}
