/**
 * A private PostgreSQL and RabbitMQ for one test run, on free ports, thrown away at the end. Prints one line of JSON with the
 * TEST_* variables when both are ready and stops when its standard input closes or a signal comes.
 *
 * Usage: node tools/platform/serve.ts
 */
import { join } from 'node:path';
import { FriendlyError } from './friendly-error.ts';
import { startTestInfrastructure } from './test-infrastructure.ts';

async function main(): Promise<void> {
  const infrastructure = await startTestInfrastructure(join(import.meta.dirname, '../..'));
  const stop = (): void => void infrastructure.stop().then(() => process.exit(0));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, stop);
  process.stdin.resume().once('close', stop);
  process.stdout.write(`${JSON.stringify(infrastructure.environment)}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof FriendlyError ? error.message : String(error)}\n`);
  process.exit(1);
});
