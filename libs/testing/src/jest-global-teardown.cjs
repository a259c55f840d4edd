const { existsSync, readdirSync, readFileSync, rmSync } = require('node:fs');
const { basename, join } = require('node:path');
const { isBuildServer } = require('./build-server.ts');

/**
 * Searches recorded logs for secrets, and stops the servers that jest-global-setup.cjs started. After the
 * tests of a whole project, also checks that every SQL statement ran and every documented response was seen.
 */
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

/**
 * Drops the templates that the test files of this run shared; see test-database.ts. Skipped on a private
 * server, which is deleted as a whole.
 */
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

/**
 * Searches the recorded logs for secrets.
 * @throws {Error} if a log holds one, which fails the run
 */
function scanLogs(workspace) {
  const folder = process.env.TEST_RECORDING_FOLDER;
  if (!folder) return;
  // Jest compiles this TypeScript module, because a hook loads it.
  const { scanRecording } = require('./secret-scan.ts');
  // The catalogue of hostile requests sends the same texts as passwords and as names, and names are logged,
  // so these texts do not count as secrets. Required by path, because hooks cannot resolve `#platform`.
  const { HOSTILE_TEXTS } = require(join(workspace, 'tools/platform/hostile-catalogue.ts'));
  try {
    const { secrets, programs, characters } = scanRecording(folder, HOSTILE_TEXTS);
    console.log(
      `No log holds a secret: searched ${characters} characters of ${programs} logs for ${secrets} secrets.`,
    );
  } finally {
    // The folder holds secrets.
    rmSync(folder, { recursive: true });
  }
}

function isWholeProject({ testPathPatterns, testNamePattern, nonFlagArgs = [], onlyFailures }) {
  return !testPathPatterns?.patterns?.length && !testNamePattern && nonFlagArgs.length === 0 && !onlyFailures;
}

/**
 * Adds up the responses of a service's API document that its integration tests have seen.
 * @returns null for a project without a document; else the documented responses, the unseen ones, and the
 * number of compared responses
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

/** Returns the patterns of responses that tests need not see, each with its reason. */
function excusedResponses(workspace) {
  const text = readFileSync(join(workspace, 'docs/openapi/unseen-answers.json'), 'utf8');
  return JSON.parse(text).map(({ answers, because }) => ({ pattern: new RegExp(`^(${answers})$`), because }));
}

/** @throws {Error} with the documented responses that no test has seen and that are not excused */
function expectEveryResponseSeen(workspace, project) {
  const coverage = apiCoverage(workspace, project);
  if (coverage === null) return;
  const { documented, unseen, exchanges } = coverage;
  console.log(
    `${project}: ${exchanges} responses match the API document; ${documented.length - unseen.length} of ${documented.length} documented responses were seen`,
  );
  const excuses = excusedResponses(workspace);
  const missing = unseen.filter((response) => !excuses.some(({ pattern }) => pattern.test(response)));
  if (missing.length > 0)
    throw new Error(
      `${project}: no integration test has seen these documented responses: ${missing.join(', ')}`,
    );
}

/** Libraries whose statements run with the rights of a service, by service. */
const LIBRARIES_WITH_SQL = { 'task-service': ['libs/messaging/src'] };

/**
 * Compares the SQL in a service's sources with the statements that the service's role ran on the test server.
 * @throws {Error} with the statements that no test has run and that are not excused
 */
async function expectEveryStatementRun(workspace, project) {
  const sources = join(workspace, 'apps', project, 'src');
  // Other projects run statements only as the administrator.
  if (!project.endsWith('-service') || !existsSync(sources)) return;
  const { statementsInFolder, statementsNotRun } = require('./statement-coverage.ts');
  const queries = await queriesOfServices();
  if (queries === null) {
    const notice =
      'The test server has no pg_stat_statements: the check that tests ran every statement is skipped.';
    if (isBuildServer(process.env)) throw new Error(notice);
    console.log(notice);
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
 * Returns the statements that the services' roles ran, and those that any role ran; null if the server does
 * not record statements.
 * @throws {Error} if the server evicted statements
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
        'pg_stat_statements evicted statements: raise pg_stat_statements.max of the test server',
      );
    const { rows } = await client.query(
      // A role that no longer exists was the role of a service.
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
