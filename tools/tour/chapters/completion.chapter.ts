import { grantedTokens, readClaims, same } from '../expectations.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk } from '../walk.ts';
import type { Instance } from './schedule.chapter.ts';

const EVENT_TIMEOUT_MS = 10_000;
const SERVICE_PROVIDER = 4;
const TESS = { personId: 1004, name: 'Tess Tech', persona: SERVICE_PROVIDER };

/** One instance is completed by a technician, twice, and the outside world hears of it, once. */
export async function completionChapter(
  walk: Walk,
  settings: TourSettings,
  instance: Instance,
): Promise<void> {
  walk.chapter('A task is completed');
  const tess = await logIn(walk, settings);
  const { taskInstanceId } = instance;
  const request = {
    method: 'POST',
    url: `${settings.task}/Instances/${taskInstanceId}/commands/complete`,
    token: tess,
    body: { notes: 'Pressure is fine.' },
  } as const;
  for (const [title, explanation] of [
    [
      'Tess was there, and completes the task',
      'Completed by her, and TaskInstanceCompletedEvent is on its way.',
    ],
    ['Tess presses the button again', 'The same response, and no second event.'],
  ] as const) {
    await walk.step(title, request, (response) => {
      same('the status', response.status, 200);
      same('status', (response.json as Instance).status, 'Completed');
      same('completedBy', (response.json as Completed).completedBy, TESS);
      return explanation;
    });
  }
  await completionHeard(walk, settings, taskInstanceId);
}

interface Completed extends Instance {
  completedBy: typeof TESS | null;
}

async function logIn(walk: Walk, settings: TourSettings): Promise<string> {
  const response = await walk.step(
    'Tess, a technician of provider 815, logs in',
    {
      method: 'POST',
      url: `${settings.auth}/auth/token/user`,
      body: { user: 'tess.tech', password: settings.password },
    },
    (granted) => {
      const claims = readClaims(grantedTokens(granted).accessToken);
      same('the claim personas', claims.personas, SERVICE_PROVIDER);
      same('the claim facilities', claims.facilities, [501]);
      return 'Two identity stores know her: her password and person come from one, provider and facility from the other.';
    },
  );
  return grantedTokens(response).accessToken;
}

async function completionHeard(walk: Walk, settings: TourSettings, taskInstanceId: string): Promise<void> {
  await walk.stepUntil(
    'The receiver of completions hears of it',
    { method: 'GET', url: `${settings.receiver}/completions?taskInstanceId=${taskInstanceId}` },
    (response) => {
      same('the status', response.status, 200);
      const { completions } = response.json as { completions: { record: Record<string, unknown> }[] };
      same('the number of completions heard', completions.length, 1);
      same('facilityId', completions[0]?.record['facilityId'], 501);
      same('completedBy', completions[0]?.record['completedBy'], TESS);
      return 'Exactly one event, in a ledger of another process.';
    },
    EVENT_TIMEOUT_MS,
  );
}
