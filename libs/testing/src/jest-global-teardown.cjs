const { existsSync, readdirSync, readFileSync, rmSync } = require('node:fs');
const { basename, join } = require('node:path');
const { isBuildServer } = require('./build-server.ts');

/** Searches the logs for secrets if they were kept, stops the servers that jest-global-setup.cjs started, and compares the responses that a
 *  whole project's tests saw with its API document. */
module.exports = async function tearDown(global, project) {
  const isOneWholeProject = project.roots.length === 1 && isWholeProject(global);
  try {
    scanLogs(project.rootDir);
    if (isOneWholeProject) await expectEveryStatementRun(project.rootDir, basename(project.roots[0]));
    await dropTemplates();
  } finally {
    await globalThis.testServers?.stop();
  }
  if (isOneWholeProject) expectEveryResponseSeen(project.rootDir, basename(project.roots[0]));
};

/** What the test files of this run shared: see test-database.ts. A server of this run's own goes as a whole. */
async function dropTemplates() {
  if (globalThis.testServers?.environment.TEST_DATABASE_URL) return;
  const { Client } = require('pg');
  const client = new Client({ connectionString: process.env.TEST_DATABASE_URL });
  await client.connect();
  try {
    const { rows } = await client.query(
      `SELECT format('DROP DATABASE %I WITH (FORCE)', datname) AS statement
       FROM pg_database WHERE starts_with(datname, $1)
       UNION ALL
       SELECT format('DROP ROLE %I', rolname) FROM pg_roles WHERE starts_with(rolname, $1)`,
      [`test_template_${process.env.TEST_RUN}`],
    );
    for (const { statement } of rows) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Throws when it finds one, which fails the run. */
function scanLogs(workspace) {
  const folder = process.env.TEST_RECORDING_FOLDER;
  if (!folder) return;
  // Jest compiles what its hooks load.
  const { scanRecording } = require('./secret-scan.ts');
  // The catalogue sends the same texts as passwords and as names, and names are logged. By its path: hooks know no `#platform`.
  const { HOSTILE_TEXTS } = require(join(workspace, 'tools/platform/hostile-catalogue.ts'));
  try {
    const { secrets, programs, characters } = scanRecording(folder, HOSTILE_TEXTS);
    console.log(
      `No log holds a secret: ${secrets} looked for in ${characters} characters of ${programs} logs.`,
    );
  } finally {
    // It holds secrets.
    rmSync(folder, { recursive: true });
  }
}

function isWholeProject({ testPathPatterns, testNamePattern, nonFlagArgs = [], onlyFailures }) {
  return !testPathPatterns?.patterns?.length && !testNamePattern && nonFlagArgs.length === 0 && !onlyFailures;
}

/**
 * Adds up which responses of a service's API document its integration tests have seen.
 * @returns null for a project without a document; else every documented response, those that no test saw, and how many were compared
 */
function apiCoverage(workspace, project) {
  const file = join(workspace, 'docs/openapi', `${project}.json`);
  const folder = join(workspace, 'test-results/api-traffic', project);
  if (!existsSync(file) || !existsSync(folder)) return null;
  const { paths } = JSON.parse(readFileSync(file, 'utf8'));
  const documented = Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .flatMap(({ operationId, responses }) =>
      Object.keys(responses).map((status) => `${operationId} ${status}`),
    );
  const seen = new Map();
  let exchanges = 0;
  for (const name of readdirSync(folder)) {
    for (const [response, count] of Object.entries(JSON.parse(readFileSync(join(folder, name), 'utf8')))) {
      seen.set(response, (seen.get(response) ?? 0) + count);
      exchanges += count;
    }
  }
  return { documented, unseen: documented.filter((response) => !seen.has(response)), exchanges };
}

/** Responses that the tests need not see, by pattern, and why. */
function excused(workspace) {
  const text = readFileSync(join(workspace, 'docs/openapi/unseen-answers.json'), 'utf8');
  return JSON.parse(text).map(({ answers, because }) => ({ pattern: new RegExp(`^(${answers})$`), because }));
}

/** @throws {Error} naming the documented responses that no test has seen and nothing excuses */
function expectEveryResponseSeen(workspace, project) {
  const coverage = apiCoverage(workspace, project);
  if (coverage === null) return;
  const { documented, unseen, exchanges } = coverage;
  console.log(
    `${project}: ${exchanges} responses agree with the API document; ${documented.length - unseen.length} of ${documented.length} documented ones were seen`,
  );
  const excuses = excused(workspace);
  const missing = unseen.filter((response) => !excuses.some(({ pattern }) => pattern.test(response)));
  if (missing.length > 0)
    throw new Error(
      `${project}: no integration test has seen these documented responses: ${missing.join(', ')}`,
    );
}

/** Libraries whose statements run with the rights of a service. */
const LIBRARIES_WITH_SQL = { 'task-service': ['libs/messaging/src'] };

/**
 * Compares the SQL in a service's sources with what its own role ran on the test server.
 * @throws {Error} naming the statements that no test has run and nothing excuses
 */
async function expectEveryStatementRun(workspace, project) {
  const sources = join(workspace, 'apps', project, 'src');
  // Others run statements as the administrator only.
  if (!project.endsWith('-service') || !existsSync(sources)) return;
  const { statementsInFolder, statementsNotRun } = require('./statement-coverage.ts');
  const queries = await queriesOfServices();
  if (queries === null) {
    const told = 'The test server has no pg_stat_statements: statements that no test ran are not looked for.';
    if (isBuildServer(process.env)) throw new Error(told);
    console.log(told);
    return;
  }
  const statements = [
    sources,
    ...(LIBRARIES_WITH_SQL[project] ?? []).map((folder) => join(workspace, folder)),
  ].flatMap((folder) => statementsInFolder(folder, workspace));
  const { excusedStatements } = require('./excused-statements.ts');
  const isExcused = ({ place, pieces }) =>
    excusedStatements.some(
      ({ file, containing }) => place.startsWith(`${file}:`) && pieces.join(' ').includes(containing),
    );
  const notRun = statementsNotRun(statements, queries.ofServices);
  const missing = [
    ...notRun.filter((statement) => !isExcused(statement)),
    ...statementsNotRun(statements.filter(isExcused), queries.ofAnybody),
  ].map(({ place }) => place);
  console.log(
    `${project}: ${statements.length - notRun.length} of ${statements.length} statements ran with the rights of the service`,
  );
  if (missing.length > 0)
    throw new Error(`${project}: no integration test has run these statements: ${missing.join(', ')}`);
}

/**
 * Texts of what the services' roles ran, and of what anybody ran; null where the server does not count statements.
 * @throws {Error} when the server had no room for all of them
 */
async function queriesOfServices() {
  const { Client } = require('pg');
  const client = new Client({ connectionString: process.env.TEST_DATABASE_URL });
  await client.connect();
  try {
    const { rows: libraries } = await client.query('SHOW shared_preload_libraries');
    if (!libraries[0].shared_preload_libraries.includes('pg_stat_statements')) return null;
    await client.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
    const { rows: evictions } = await client.query('SELECT dealloc::int FROM pg_stat_statements_info');
    if (evictions[0].dealloc > 0)
      throw new Error(
        'pg_stat_statements forgot statements: raise pg_stat_statements.max of the test server',
      );
    const { rows } = await client.query(
      // Roles that are gone were those of services.
      `SELECT query, bool_or(NOT coalesce(rolsuper OR rolname = 'test_owner', false)) AS "isOfService"
       FROM pg_stat_statements LEFT JOIN pg_roles ON pg_roles.oid = userid
       WHERE query IS NOT NULL GROUP BY query`,
    );
    const textOf = ({ query }) => query;
    return {
      ofServices: rows.filter(({ isOfService }) => isOfService).map(textOf),
      ofAnybody: rows.map(textOf),
    };
  } finally {
    await client.end();
  }
}
