import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

// Jest loads this file through SWC as CommonJS; the servers' own code runs natively in a process of its own.
const NAMES = ['TEST_DATABASE_URL', 'TEST_RABBITMQ_URL', 'TEST_RABBITMQ_MANAGEMENT_URL'] as const;

declare global {
  var testInfrastructureProcess: ChildProcess | undefined;
}

/** Gives the run a PostgreSQL and a RabbitMQ: those that TEST_* name, else private ones that end with the run. */
export default async function setUp(config: { rootDir: string }): Promise<void> {
  if (NAMES.every((name) => process.env[name])) return;
  const node = join(config.rootDir, 'node_modules/.bin/node');
  const child = spawn(node, [join(config.rootDir, 'tools/infrastructure/serve.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  globalThis.testInfrastructureProcess = child;
  Object.assign(process.env, JSON.parse(await firstLine(child)));
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () =>
      reject(new Error('No PostgreSQL and RabbitMQ for the integration tests (see above).')),
    );
    if (child.stdout) createInterface({ input: child.stdout }).once('line', resolve);
  });
}
