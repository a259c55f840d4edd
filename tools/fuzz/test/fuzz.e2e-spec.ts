import { join } from 'node:path';
import { runProcess } from '@platform/testing';

/** Some 40 s as a rule, most of them starting the platform. */
const RUN_TIMEOUT_MS = 240_000;

async function runTool(entry: string, args: string[]) {
  const running = await runProcess({ entry: join(__dirname, '..', entry), args, env: {} });
  try {
    const exitCode = await running.exited;
    return { exitCode, written: running.output() };
  } finally {
    await running.stop();
  }
}

describe('a short fuzz run', () => {
  it(
    'finds no status of 500 and above, no missing or undocumented response, no accepted hostile token and no leaked secret',
    async () => {
      const args = ['--seed', '1', '--requests', '16000', '--log-level', 'trace', '--no-build'];
      const { exitCode, written } = await runTool('main.ts', args);
      // With everything that it wrote as the message.
      expect({ exitCode, written }).toEqual({ exitCode: 0, written });
      // It got past the validation, and not only past that.
      const [, succeeded, all] = /(\d+) of (\d+) operations succeeded/.exec(written) ?? [];
      expect(Number(all) - Number(succeeded)).toBeLessThanOrEqual(8);
    },
    RUN_TIMEOUT_MS,
  );
});
