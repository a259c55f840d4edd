import type { Benchmark } from '../benchmark.ts';
import { startMeasuredProgram } from '../measured-program.ts';

/** Looking a token up among the revocations. */
export const revocationCheck: Benchmark = {
  id: 'revocation-check',
  title: 'Checking a token against 10⁶ revocations in memory',
  async prepare(laboratory) {
    const program = await startMeasuredProgram(laboratory, 'revocation-check');
    return {
      unit: 'ns/check',
      contestants: [
        program.contestant(
          'million',
          'the feed holds a million revocations, half of tokens, half of persons',
        ),
        program.contestant('none', 'the feed holds none'),
      ],
      comparisons: [{ title: 'none loaded', of: 'million', against: 'none', goal: { atMost: 1.1 } }],
      conditions: [
        '1,000 tokens in turn, none of them revoked; each check asks for the token and for the person',
      ],
      close: () => program.stop(),
    };
  },
};

/** What a million revocations take. */
export const revocationMemory: Benchmark = {
  id: 'revocation-memory',
  title: 'Memory of 10⁶ revocations',
  async prepare(laboratory) {
    const program = await startMeasuredProgram(laboratory, 'revocation-check');
    return {
      unit: 'MB',
      maxRounds: 1,
      contestants: [
        program.contestant('tables', 'the tables of the feed'),
        program.contestant(
          'whole process',
          'growth of heap and buffers while it loaded them, after a collection',
        ),
      ],
      comparisons: [
        { title: '100 MB, tables', of: 'tables', against: 100, goal: { atMost: 1 } },
        { title: '100 MB, process', of: 'whole process', against: 100, goal: { atMost: 1 } },
      ],
      conditions: ['loaded page by page, as from auth-service'],
      close: () => program.stop(),
    };
  },
};
