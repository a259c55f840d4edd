import { same } from '../difference.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk } from '../walk.ts';

const SERVICES = [
  ['auth', 'Its database answers and is migrated.'],
  ['settings', 'Its database answers, and it knows which tokens are revoked.'],
  ['task', 'Its database and both buses answer, and it knows which tokens are revoked.'],
] as const;

/** Nothing else makes sense before these three are ready. */
export async function readinessChapter(walk: Walk, settings: TourSettings): Promise<void> {
  walk.chapter('Is everybody there?');
  for (const [service, explanation] of SERVICES) {
    await walk.step(
      `The ${service} service says whether it can work`,
      { method: 'GET', url: `${settings[service]}/health/ready` },
      (answer) => {
        same('the status', answer.status, 200);
        return explanation;
      },
    );
  }
}
