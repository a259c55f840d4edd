import { createHash } from 'node:crypto';

/** Letters and digits that tell this run from others on the same servers. jest.preset.cjs makes them. */
export function runName(): string {
  const name = process.env['TEST_RUN'];
  if (!name) throw new Error('TEST_RUN is not set; jest.preset.cjs provides it');
  return name;
}

/** 32 random bytes that all test files of this run share, e.g. a key of what is in a shared template. */
export function keyOfRun(purpose: string): Buffer {
  return createHash('sha256').update(`${runName()}:${purpose}`).digest();
}
