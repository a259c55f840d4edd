const { spawn } = require('node:child_process');
const { mkdtempSync, rmSync } = require('node:fs');
const { basename, join, relative } = require('node:path');
const { createInterface } = require('node:readline');

const NAMES = ['TEST_DATABASE_URL', 'TEST_RABBITMQ_URL', 'TEST_RABBITMQ_MANAGEMENT_URL'];

/** Their logs and traffic are kept, and the logs searched for secrets when all is over: see libs/testing/src/scan-recording.ts. */
const RECORDED_PROJECTS = ['apps/auth-service'];

/**
 * Gives a Jest run a PostgreSQL and a RabbitMQ: those that TEST_* name, else private ones that end with the run. Plain
 * CommonJS because that is what Jest loads; the servers' own code runs natively in a process of its own.
 */
module.exports = async function setUp({ rootDir }, { roots }) {
  // What an earlier run saw says nothing about this one.
  for (const root of roots)
    rmSync(join(rootDir, 'test-results/api-traffic', basename(root)), { recursive: true, force: true });
  if (roots.some((root) => RECORDED_PROJECTS.includes(relative(rootDir, root))))
    process.env.TEST_RECORDING_FOLDER = mkdtempSync(join(rootDir, 'test-results/recording-'));
  if (NAMES.every((name) => process.env[name])) return;
  const node = join(rootDir, 'node_modules/.bin/node');
  const child = spawn(node, [join(rootDir, 'tools/platform/serve.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  globalThis.testInfrastructureProcess = child;
  Object.assign(process.env, JSON.parse(await firstLine(child)));
};

function firstLine(child) {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () =>
      reject(new Error('No PostgreSQL and RabbitMQ for the integration tests (see above).')),
    );
    createInterface({ input: child.stdout }).once('line', resolve);
  });
}
