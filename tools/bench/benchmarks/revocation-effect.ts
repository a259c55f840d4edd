import { randomUUID } from 'node:crypto';
import { makeAccessToken } from '#platform/access-token.ts';
import type { Benchmark } from '../benchmark.ts';
import { HttpLoad } from '../http-load.ts';
import { percentile } from '../statistics.ts';

const TOKENS_AT_ONCE = 20;
const PATH = '/platform/v1/settings';
/** A token that is still good after this long fails the run: far beyond the goal. */
const GIVE_UP_MS = 10_000;

/** From the revocation of a token to its refusal by another service. */
export const revocationEffect: Benchmark = {
  id: 'revocation-effect',
  title: 'From PUT revocation to the refusal by settings-service',
  async prepare(laboratory) {
    const services = await laboratory.startServices(['auth', 'settings']);
    const auth = new HttpLoad(services.programs.auth!.url, TOKENS_AT_ONCE);
    const settings = new HttpLoad(services.programs.settings!.url, TOKENS_AT_ONCE);
    const administrator = makeAccessToken(services.settings);
    const effectMs = async (): Promise<number> => {
      const jti = randomUUID();
      const authorization = `Bearer ${makeAccessToken(services.settings, { jti })}`;
      await settings.send({ method: 'GET', path: PATH, headers: { authorization }, expect: 200 });
      const headers = { authorization: `Bearer ${administrator}` };
      await auth.send({ method: 'PUT', path: `/auth/revocations/jti/${jti}`, headers, expect: 200 });
      return untilRefused(settings, authorization);
    };
    return {
      unit: 'ms (p99)',
      contestants: [
        {
          name: 'effect',
          does: 'asks settings-service again and again, from the moment that auth-service answered the PUT until it refuses',
          measure: async (seconds) => {
            const samples: number[] = [];
            const endsAtMs = performance.now() + seconds * 1_000;
            while (performance.now() < endsAtMs) {
              samples.push(...(await Promise.all(Array.from({ length: TOKENS_AT_ONCE }, effectMs))));
            }
            return percentile(samples, 0.99);
          },
        },
      ],
      comparisons: [{ title: '2 s', of: 'effect', against: 2_000, goal: { atMost: 1 } }],
      conditions: [`${TOKENS_AT_ONCE} tokens at once; the 99th percentile of each round`],
      close: async () => {
        await Promise.all([auth.close(), settings.close()]);
        await services.stop();
      },
    };
  },
};

async function untilRefused(settings: HttpLoad, authorization: string): Promise<number> {
  const startedAtMs = performance.now();
  while (performance.now() - startedAtMs < GIVE_UP_MS) {
    const status = await settings.status({ method: 'GET', path: PATH, headers: { authorization } });
    if (status === 401) return performance.now() - startedAtMs;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`a revoked token still works after ${GIVE_UP_MS} ms`);
}
