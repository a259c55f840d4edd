/**
 * Returns true on a build server and in `npm test -- --all`, where every program that a test may need must be
 * installed.
 */
export function isBuildServer({ CI, TEST_FULL_SIZE }: NodeJS.ProcessEnv): boolean {
  return TEST_FULL_SIZE === 'true' || CI === 'true';
}
