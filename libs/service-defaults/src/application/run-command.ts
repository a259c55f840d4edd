import { ConfigError } from '../config/config';

/**
 * Runs a program that ends by itself, such as a migration. Where the work throws a ConfigError, the process ends with the list of
 * variables on standard error and exit code 1: as with `runService`, whoever starts it needs that list, and no stack trace around it.
 * Any other failure ends it as Node ends a process: with a stack trace and a non-zero code.
 */
export async function runCommand(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    // Not process.exit(): what was written to a pipe must arrive.
    process.exitCode = 1;
  }
}
