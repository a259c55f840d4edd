import { join } from 'node:path';
import { runTool } from '@platform/testing';

/** Some 100 s as a rule, most of them measuring costs. */
const RUN_TIMEOUT_MS = 480_000;

describe('a short fuzz run', () => {
  it(
    'finds no status of 500 and above, no missing or undocumented response, no accepted hostile token and no leaked secret',
    async () => {
      const args = ['--seed', '1', '--requests', '16000', '--log-level', 'trace'];
      const entry = join(__dirname, '../main.ts');
      const written = await runTool({ entry, args, env: {}, timeoutMs: RUN_TIMEOUT_MS - 10_000 });
      expect(written).toContain('✔ nothing found');
    },
    RUN_TIMEOUT_MS,
  );
});
