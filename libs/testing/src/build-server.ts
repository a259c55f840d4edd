/** Everything must be there that a test may need: on a build server, and in `npm test -- --all`. */
export function isBuildServer({ CI, TEST_FULL_SIZE }: NodeJS.ProcessEnv): boolean {
  return TEST_FULL_SIZE === 'true' || CI === 'true';
}
