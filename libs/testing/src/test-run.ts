import { createHash } from 'node:crypto';

/**
 * Returns the alphanumeric name that distinguishes this run from others on the same servers. jest.preset.cjs
 * creates it.
 */
export function runName(): string {
  const name = process.env['TEST_RUN'];
  if (!name) throw new Error('TEST_RUN is not set; jest.preset.cjs provides it');
  return name;
}

/** Returns 32 bytes that all test files of this run share, e.g. a key for data in a shared template. */
export function keyOfRun(purpose: string): Buffer {
  return createHash('sha256').update(`${runName()}:${purpose}`).digest();
}
