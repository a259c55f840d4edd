import { join } from 'node:path';
import { runTool } from '@platform/testing';

/** A run usually takes about 45 s, an upgrade four times as long. Both take longer if other tests run. */
export const RUN_TIMEOUT_MS = 480_000;

/** npm and proxy settings of this process, because an upgrade may fetch packages. */
const NPM_ENVIRONMENT = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => /^npm_config_|_proxy$|^NODE_EXTRA_CA_CERTS$/i.test(name)),
) as Record<string, string>;

/**
 * Runs chaos with these flags and expects no findings.
 * @param rounds number of faults that must be injected
 */
export async function expectClean(rounds: number, args: readonly string[]): Promise<void> {
  const written = await runTool({
    entry: join(__dirname, '../main.ts'),
    args: ['--seed', '1', ...args],
    env: NPM_ENVIRONMENT,
    timeoutMs: RUN_TIMEOUT_MS - 30_000,
  });
  expect(written.match(/^ *[\d.]+ s {2}✔ +\d\/\d /gm)).toHaveLength(rounds);
  expect(written).toContain('nothing lost, nothing twice');
}
