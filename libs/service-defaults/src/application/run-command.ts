import { Logger } from '@nestjs/common';
import { ServiceLogger } from '../logging/service-logger';

/** A program that ends by itself could not do its work; the message alone tells whoever runs it why, and holds no secret. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Runs a program that ends by itself, such as a migration, with the logger that services have. Where it fails, the process ends with exit
 *  code 1 and the reason as its last line.
 *  @param name what its lines call it, e.g. `task-service-migrate` */
export async function runCommand(name: string, work: () => Promise<unknown>): Promise<void> {
  const logger = new ServiceLogger({ name, level: 'info' });
  Logger.overrideLogger(logger);
  try {
    await work();
  } catch (error) {
    logger.fatal(error instanceof CommandError ? error.message : error);
    // Not process.exit(): what was written to a pipe must arrive.
    process.exitCode = 1;
  }
  logger.flush();
}
