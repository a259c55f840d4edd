import { isBuildServer } from './build-server';

interface Runners {
  readonly describe: typeof describe;
  readonly it: typeof it;
}

/**
 * `describe` and `it` for tests that need a program or a right. Without it they are skipped and say so; where
 * everything must be there, a test fails in their place.
 * @param missing what is not here, and what brings it; null: nothing
 */
export function testsThatNeed(what: string, missing: string | null): Runners {
  if (missing !== null && isBuildServer(process.env))
    it(`${what}: may not be skipped here`, () => {
      throw new Error(missing);
    });
  return testsThatMayNeed(what, missing);
}

/** The same for files of others that may lie beside the checkout, and need not even on the build server. */
export function testsThatMayNeed(what: string, missing: string | null): Runners {
  if (missing === null) return { describe, it };
  process.stderr.write(`\nSKIPPED: ${what}: ${missing}\n\n`);
  // eslint-disable-next-line no-restricted-syntax -- The one place where a test is skipped.
  return { describe: describe.skip, it: it.skip };
}
