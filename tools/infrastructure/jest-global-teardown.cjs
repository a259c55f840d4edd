const { once } = require('node:events');
const { basename } = require('node:path');
const { expectEveryAnswerSeen } = require('./api-coverage.cjs');

/**
 * Stops the servers that jest-global-setup.cjs started, and waits until they are gone. After all of a project's files, compares the
 * answers that they saw with the project's API document.
 */
module.exports = async function tearDown(global, project) {
  await stopServers();
  if (project.roots.length === 1 && isWholeProject(global))
    expectEveryAnswerSeen(project.rootDir, basename(project.roots[0]));
};

function isWholeProject({ testPathPatterns, testNamePattern, nonFlagArgs = [], onlyFailures }) {
  return !testPathPatterns?.patterns?.length && !testNamePattern && nonFlagArgs.length === 0 && !onlyFailures;
}

async function stopServers() {
  const child = globalThis.testInfrastructureProcess;
  if (!child || child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.stdin.end();
  await ended;
}
