import { once } from 'node:events';

/** Stops the servers that jest-global-setup.ts started, and waits until they are gone. */
export default async function tearDown(): Promise<void> {
  const child = globalThis.testInfrastructureProcess;
  if (!child || child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.stdin?.end();
  await ended;
}
