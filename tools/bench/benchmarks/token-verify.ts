import type { Benchmark } from '../benchmark.ts';
import { startMeasuredProgram } from '../measured-program.ts';

const ALGORITHMS = ['ES256', 'RS256'] as const;

/** Verifying tokens that were seen before: the guard of every service on every request. */
export const tokenVerify: Benchmark = {
  id: 'token-verify',
  title: 'Verifying an access token, warm',
  async prepare(laboratory) {
    const program = await startMeasuredProgram(laboratory, 'token-verify');
    return {
      unit: 'verifications/s',
      contestants: ALGORITHMS.flatMap((alg) => [
        program.contestant(
          `guard ${alg}`,
          'remembers the verified text; looks at key changes, expiry, not-before and revocation every time',
        ),
        program.contestant(
          `jsonwebtoken ${alg}`,
          'verify() with an imported key, algorithm, issuer and audience given; knows no revocation',
        ),
      ]),
      comparisons: ALGORITHMS.map((alg) => ({
        title: `jsonwebtoken, ${alg}`,
        of: `guard ${alg}`,
        against: `jsonwebtoken ${alg}`,
        goal: { atLeast: 10 },
      })),
      conditions: ['1,000 tokens in turn, one process, one thread'],
      close: () => program.stop(),
    };
  },
};
