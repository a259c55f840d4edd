const { once } = require('node:events');

/** Stops the servers that jest-global-setup.cjs started, and waits until they are gone. */
module.exports = async function tearDown() {
  const child = globalThis.testInfrastructureProcess;
  if (!child || child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.stdin.end();
  await ended;
};
