const { mkdtempSync, rmSync } = require('node:fs');
const { basename, join } = require('node:path');

const NAMES = ['TEST_DATABASE_URL', 'TEST_RABBITMQ_URL', 'TEST_RABBITMQ_MANAGEMENT_URL'];

/**
 * Projects whose logs and traffic are recorded. The global teardown searches the logs for secrets, see
 * libs/testing/src/secret-scan.ts.
 */
const RECORDED_PROJECTS = ['auth-service'];

/**
 * Gives a Jest run a PostgreSQL and a RabbitMQ: those named by TEST_*, else private ones that stop with the
 * run.
 */
module.exports = async function setUp({ rootDir }, { roots }) {
  // Discard the traffic of earlier runs.
  for (const root of roots)
    rmSync(join(rootDir, 'test-results/api-traffic', basename(root)), { recursive: true, force: true });
  if (roots.some((root) => RECORDED_PROJECTS.includes(basename(root))))
    process.env.TEST_RECORDING_FOLDER = mkdtempSync(join(rootDir, 'test-results/recording-'));
  if (NAMES.every((name) => process.env[name])) return;
  // Jest compiles this TypeScript module, because a hook loads it. The path is in a variable, because Nx
  // treats a literal path as a lazy import and then forbids static imports of the module.
  const servers = join(rootDir, 'tools/platform/private-servers.ts');
  const { startTestServers } = require(servers);
  globalThis.testServers = await startTestServers();
  Object.assign(process.env, globalThis.testServers.environment);
};
