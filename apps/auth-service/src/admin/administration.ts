import { databaseAdvice, isUniqueViolation } from '@platform/database';
import { ConfigError, loadConfig, secret } from '@platform/service-defaults';
import { z } from 'zod';
import { withDatabase } from './admin-database.client';
import { APPLICATION_COMMANDS } from './application-commands';
import type { CommandGroup } from './command';
import { RefusedError, UsageError } from './command';
import { parseCommandLine, wantsJson } from './command-line';
import { KEY_COMMANDS } from './key-commands';
import { REVOCATION_COMMANDS } from './revocation-commands';

/** Every subject of administration; a new one is a file and a line here. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  APPLICATION_COMMANDS,
  KEY_COMMANDS,
  REVOCATION_COMMANDS,
];

const postgresUrl = z.url({ protocol: /^postgres(ql)?$/ });

/** Administration writes as the role that owns the tables: the service's own role may not change applications. */
export const adminConfigSchema = z
  .object({
    DATABASE_URL: postgresUrl.optional(),
    MIGRATION_DATABASE_URL: postgresUrl.optional(),
    SECRET_ENCRYPTION_KEY: secret({ minBytes: 32 }).optional(),
  })
  .refine((config) => (config.MIGRATION_DATABASE_URL ?? config.DATABASE_URL) !== undefined, {
    path: ['MIGRATION_DATABASE_URL'],
    message: 'or DATABASE_URL is required',
  })
  .refine(({ SECRET_ENCRYPTION_KEY: key }) => key === undefined || key.length === 32, {
    path: ['SECRET_ENCRYPTION_KEY'],
    message: 'must hold exactly 32 bytes',
  });

/** Where a command's words go. */
export interface AdminOutput {
  out: (text: string) => void;
  err: (text: string) => void;
}

/** Runs one command line. @param env of the process, unless given
 *  @returns the exit code: 0 done, 1 refused or failed, 2 wrong command line */
export async function administer(
  args: readonly string[],
  { out, err }: AdminOutput,
  env?: NodeJS.ProcessEnv,
): Promise<0 | 1 | 2> {
  try {
    out(await answer(args, env));
    return 0;
  } catch (error) {
    const message = describe(error);
    err(wantsJson(args) ? JSON.stringify({ error: message }) : `✘ ${message}`);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function answer(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> {
  const request = parseCommandLine(args, COMMAND_GROUPS);
  if (request.kind === 'help') return request.text;
  const config = loadConfig(adminConfigSchema, env);
  const url = config.MIGRATION_DATABASE_URL ?? config.DATABASE_URL ?? '';
  const result = await withDatabase(url, (dataSource) =>
    request.run({ dataSource, encryptionKey: () => required(config.SECRET_ENCRYPTION_KEY) }),
  );
  return request.isJson ? JSON.stringify(result.json, null, 2) : result.text;
}

function required(key: Buffer | undefined): Buffer {
  if (key !== undefined) return key;
  throw new RefusedError('SECRET_ENCRYPTION_KEY is required: the same as the service has');
}

/** What to tell the administrator. Errors of the database are told without their statement and its parameters. */
function describe(error: unknown): string {
  if (error instanceof UsageError || error instanceof RefusedError || error instanceof ConfigError)
    return error.message;
  if (isUniqueViolation(error)) return 'somebody else changed the same at the same time: look, and try again';
  const message = error instanceof Error && error.message !== '' ? error.message : String(error);
  return databaseAdvice(error) ?? message;
}
