import { isBuildServer } from './build-server';

interface Runners {
  readonly describe: typeof describe;
  readonly it: typeof it;
}

/**
 * Returns `describe` and `it` for tests that need a program or a right. If it is missing, the tests are
 * skipped with a notice. On a build server and in a full run a test fails instead.
 * @param missing what is missing and how to install it; null if nothing is missing
 */
export function testsThatNeed(what: string, missing: string | null): Runners {
  if (missing !== null && isBuildServer(process.env))
    it(`${what}: may not be skipped here`, () => {
      throw new Error(missing);
    });
  return testsThatMayNeed(what, missing);
}

/**
 * Like `testsThatNeed`, for third-party files next to the checkout that are optional even on the build
 * server.
 */
export function testsThatMayNeed(what: string, missing: string | null): Runners {
  if (missing === null) return { describe, it };
  process.stderr.write(`\nSKIPPED: ${what}: ${missing}\n\n`);
  // eslint-disable-next-line no-restricted-syntax -- the only place that skips tests
  return { describe: describe.skip, it: it.skip };
}
