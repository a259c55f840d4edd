import { same } from '../difference.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk } from '../walk.ts';

const SERVICES = ['auth', 'settings', 'task'] as const;

/** Nothing else makes sense before these three are ready. */
export async function readinessChapter(walk: Walk, settings: TourSettings): Promise<void> {
  walk.chapter('Is everybody there?');
  for (const service of SERVICES) {
    await walk.step(
      `The ${service} service says whether it can work`,
      { method: 'GET', url: `${settings[service]}/health/ready` },
      (answer) => {
        same('the status', answer.status, 200);
        return 'Ready: its database and, where it has one, its broker can be reached.';
      },
    );
  }
}
