const { mkdtempSync, rmSync } = require('node:fs');
const { basename, join, relative } = require('node:path');

const NAMES = ['TEST_DATABASE_URL', 'TEST_RABBITMQ_URL', 'TEST_RABBITMQ_MANAGEMENT_URL'];

/** Their logs and traffic are kept; the global teardown searches the logs for secrets: see libs/testing/src/secret-scan.ts. */
const RECORDED_PROJECTS = ['apps/auth-service'];

/**
 * Gives a Jest run a PostgreSQL and a RabbitMQ: those that TEST_* name, else private ones that end with the run.
 */
module.exports = async function setUp({ rootDir }, { roots }) {
  // Traffic of an earlier run must not count for this one.
  for (const root of roots)
    rmSync(join(rootDir, 'test-results/api-traffic', basename(root)), { recursive: true, force: true });
  if (roots.some((root) => RECORDED_PROJECTS.includes(relative(rootDir, root))))
    process.env.TEST_RECORDING_FOLDER = mkdtempSync(join(rootDir, 'test-results/recording-'));
  if (NAMES.every((name) => process.env[name])) return;
  // Jest compiles what its hooks load. By a variable: Nx takes a literal for a lazy import and forbids the static ones then.
  const servers = join(rootDir, 'tools/platform/private-servers.ts');
  const { startTestServers } = require(servers);
  globalThis.testServers = await startTestServers();
  Object.assign(process.env, globalThis.testServers.environment);
};
