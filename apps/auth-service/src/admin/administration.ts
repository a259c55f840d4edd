import { isConnectionError, isUniqueViolation } from '@platform/database';
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

const SQL_STATE_ADVICE: Readonly<Record<string, string>> = {
  '42501': 'this database role may not do that: give the owner’s address in MIGRATION_DATABASE_URL',
  '42P01': 'the database has no tables of the service yet: migrate it first',
  '3F000': 'the database has no tables of the service yet: migrate it first',
  '28P01': 'the database refuses the user or the password',
  '3D000': 'there is no such database',
};

/** What to tell the administrator. Errors of the database are told without their statement and its parameters. */
function describe(error: unknown): string {
  if (error instanceof UsageError || error instanceof RefusedError || error instanceof ConfigError)
    return error.message;
  if (isUniqueViolation(error)) return 'somebody else changed the same at the same time: look, and try again';
  const advice = SQL_STATE_ADVICE[sqlState(error)];
  if (advice !== undefined) return advice;
  const message = error instanceof Error && error.message !== '' ? error.message : String(error);
  return isConnectionError(error) ? `the database cannot be reached: ${message}` : message;
}

function sqlState(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}
