const { rmSync } = require('node:fs');
const { basename } = require('node:path');
const { expectEveryAnswerSeen } = require('./api-coverage.cjs');

/** Searches the logs for secrets if they were kept, stops the servers that jest-global-setup.cjs started, and compares the answers that a
 *  whole project's tests saw with its API document. */
module.exports = async function tearDown(global, project) {
  try {
    scanLogs();
  } finally {
    await globalThis.testServers?.stop();
  }
  if (project.roots.length === 1 && isWholeProject(global))
    expectEveryAnswerSeen(project.rootDir, basename(project.roots[0]));
};

/** Throws when it finds one, which fails the run. */
function scanLogs() {
  const folder = process.env.TEST_RECORDING_FOLDER;
  if (!folder) return;
  // Jest compiles what its hooks load.
  const { scanRecording } = require('../../libs/testing/src/scan-recording.ts');
  try {
    const { secrets, programs, characters } = scanRecording(folder);
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
