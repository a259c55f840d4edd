import { ConfigError } from '../config/config';
import { logSafeError } from '../logging/log-safe';

/** A program that ends by itself could not do its work; the message alone tells whoever runs it why, and holds no secret. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Runs a program that ends by itself, such as a migration. Where it fails, the process ends with exit code 1 and the reason on standard
 *  error: of a ConfigError the list of variables, of a CommandError its message, as with `runService` without a stack trace around it.
 *  Any other failure is told with its stack trace, but without what libraries attach to errors (statement parameters, rows). */
export async function runCommand(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    process.stderr.write(`${reasonOf(error)}\n`);
    // Not process.exit(): what was written to a pipe must arrive.
    process.exitCode = 1;
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof CommandError) return `✘ ${error.message}`;
  const { stack, message } = logSafeError(error);
  return stack ?? message;
}
