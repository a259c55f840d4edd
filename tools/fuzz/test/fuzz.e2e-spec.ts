import { join } from 'node:path';
import { runTool } from '@platform/testing';

/** Some 40 s as a rule, most of them starting the platform. */
const RUN_TIMEOUT_MS = 240_000;

describe('a short fuzz run', () => {
  it(
    'finds no status of 500 and above, no missing or undocumented response, no accepted hostile token and no leaked secret',
    async () => {
      const args = ['--seed', '1', '--requests', '16000', '--log-level', 'trace', '--no-build'];
      const entry = join(__dirname, '../main.ts');
      const written = await runTool({ entry, args, env: {}, timeoutMs: RUN_TIMEOUT_MS - 10_000 });
      // It got past the validation, and not only past that.
      const [, succeeded, all] = /(\d+) of (\d+) operations succeeded/.exec(written) ?? [];
      expect(Number(all) - Number(succeeded)).toBeLessThanOrEqual(8);
    },
    RUN_TIMEOUT_MS,
  );
});
