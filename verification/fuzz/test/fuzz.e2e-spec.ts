import { join } from 'node:path';
import { runTool } from '@platform/testing';

/** A run usually takes about 100 s, most of it for the measurement of costs. */
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
