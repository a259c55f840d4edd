import { join } from 'node:path';
import { runTool } from '@platform/testing';

/** Some 45 s as a rule, an upgrade four times that; more beside other tests. */
export const RUN_TIMEOUT_MS = 480_000;

/** An upgrade may fetch packages: as whoever runs the tests has set it up. */
const NPM_ENVIRONMENT = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => /^npm_config_|_proxy$|^NODE_EXTRA_CA_CERTS$/i.test(name)),
) as Record<string, string>;

/** Runs chaos with these flags. @param rounds faults that it has to have injected */
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
