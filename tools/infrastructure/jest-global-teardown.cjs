const { once } = require('node:events');
const { rmSync } = require('node:fs');

/** Searches the logs for secrets if they were kept, and stops the servers that jest-global-setup.cjs started. */
module.exports = async function tearDown() {
  try {
    scanLogs();
  } finally {
    await stopServers();
  }
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

/** Waits until they are gone. */
async function stopServers() {
  const child = globalThis.testInfrastructureProcess;
  if (!child || child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.stdin.end();
  await ended;
}
