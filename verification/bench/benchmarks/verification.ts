import { randomUUID } from 'node:crypto';
import { makeAccessToken } from '#platform/callers.ts';
import { percentile } from '#platform/statistics.ts';
import { becomesTrue } from '#platform/waiting.ts';
import { type Benchmark, closing, firstAgainstSecond } from '../contest.ts';
import { HttpLoad } from '../load.ts';
import { measuredBy, startMeasuredProgram } from '../measured-program.ts';

const ALGORITHMS = ['ES256', 'RS256'] as const;

/** Verification of tokens that were verified before, as in the guard of every service. */
export const tokenVerify: Benchmark = {
  id: 'token-verify',
  title: 'Verifying an access token, warm',
  async prepare(servers) {
    const program = await startMeasuredProgram(servers, 'token-verify');
    return {
      unit: 'verifications/s',
      maxRounds: 3,
      contestants: ALGORITHMS.flatMap((alg) => [
        measuredBy(
          program,
          `guard ${alg}`,
          'memoises verified tokens; checks key changes, expiry, not-before and revocation every time',
        ),
        measuredBy(
          program,
          `jsonwebtoken ${alg}`,
          'verify() with an imported key and a given algorithm, issuer and audience; checks no revocation',
        ),
      ]),
      comparisons: ALGORITHMS.map((alg) => ({
        title: `jsonwebtoken, ${alg}`,
        of: `guard ${alg}`,
        against: `jsonwebtoken ${alg}`,
        goal: { atLeast: 50 },
      })),
      conditions: ['1,000 tokens in turn, one process, one thread'],
      close: closing(program),
    };
  },
};

/** Lookup of a token among the revocations. */
export const revocationCheck: Benchmark = {
  id: 'revocation-check',
  title: 'Checking a token against 10⁶ revocations in memory',
  async prepare(servers) {
    const program = await startMeasuredProgram(servers, 'revocation-check');
    return {
      unit: 'ns/check',
      maxRounds: 3,
      ...firstAgainstSecond('none loaded', { atMost: 1.1 }, [
        measuredBy(
          program,
          'million',
          'the feed holds a million revocations, half of tokens, half of persons',
        ),
        measuredBy(program, 'none', 'the feed holds none'),
      ]),
      conditions: [
        '1,000 tokens in turn, none of them revoked; each check looks up the token and the person',
      ],
      close: closing(program),
    };
  },
};

/** Memory of a million revocations. */
export const revocationMemory: Benchmark = {
  id: 'revocation-memory',
  title: 'Memory of 10⁶ revocations',
  async prepare(servers) {
    const program = await startMeasuredProgram(servers, 'revocation-check');
    return {
      unit: 'MB',
      maxRounds: 1,
      contestants: [
        measuredBy(program, 'tables', 'the tables of the feed'),
        measuredBy(
          program,
          'whole process',
          'growth of heap and buffers by the load, after a garbage collection',
        ),
      ],
      comparisons: [
        { title: '50 MB, tables', of: 'tables', against: 50, goal: { atMost: 1 } },
        { title: '50 MB, process', of: 'whole process', against: 50, goal: { atMost: 1 } },
      ],
      conditions: ['loaded page by page, as from auth-service'],
      close: closing(program),
    };
  },
};

const TOKENS_AT_ONCE = 20;
const PATH = '/platform/v1/settings';
/** Timeout, far beyond the goal. The run fails if a revoked token is still accepted after this time. */
const GIVE_UP_MS = 10_000;

/** Time from the revocation of a token to its refusal by another service. */
export const revocationEffect: Benchmark = {
  id: 'revocation-effect',
  title: 'From PUT revocation to the refusal by settings-service',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'settings']);
    const auth = new HttpLoad(platform.url('auth'), TOKENS_AT_ONCE);
    const settings = new HttpLoad(platform.url('settings'), TOKENS_AT_ONCE);
    const administrator = makeAccessToken(platform.settings);
    const effectMs = async (): Promise<number> => {
      const jti = randomUUID();
      const authorization = `Bearer ${makeAccessToken(platform.settings, { jti })}`;
      await settings.send({ method: 'GET', path: PATH, headers: { authorization }, expect: 200 });
      const headers = { authorization: `Bearer ${administrator}` };
      await auth.send({ method: 'PUT', path: `/auth/revocations/jti/${jti}`, headers, expect: 200 });
      return untilRefused(settings, authorization);
    };
    return {
      unit: 'ms (p99)',
      maxRounds: 3,
      contestants: [
        {
          name: 'effect',
          does: 'polls settings-service, from the response of the PUT until the token is refused',
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
      comparisons: [{ title: '1 s', of: 'effect', against: 1_000, goal: { atMost: 1 } }],
      conditions: [`${TOKENS_AT_ONCE} tokens at once; the 99th percentile of each round`],
      close: closing(auth, settings, platform),
    };
  },
};

async function untilRefused(settings: HttpLoad, authorization: string): Promise<number> {
  const startedAtMs = performance.now();
  const request = { method: 'GET', path: PATH, headers: { authorization } } as const;
  const isRefused = async (): Promise<boolean> => (await settings.status(request)) === 401;
  if (!(await becomesTrue(isRefused, { timeoutMs: GIVE_UP_MS, intervalMs: 5 })))
    throw new Error(`a revoked token still works after ${GIVE_UP_MS} ms`);
  return performance.now() - startedAtMs;
}
