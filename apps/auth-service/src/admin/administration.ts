import { databaseAdvice, isUniqueViolation } from '@platform/database';
import { ConfigError, loadConfig } from '@platform/service-defaults';
import { Command, CommanderError } from 'commander';
import { z } from 'zod';
import { checkSealingKeys, sealingKeyShape, sealingKeys, secretBoxOf } from '../keys/sealing-keys';
import type { SecretBox } from '../keys/secret-box';
import { ownerAddressShape, ownerUrl } from '../migrations/migration-settings';
import { AUTH_SCHEMA, STORE_SCHEMAS, withOwnerConnection } from '../migrations/schemas';
import { addApplicationCommands } from './application-commands';
import { RefusedError, columns } from './command';
import type { CommandContext, CommandResult, RunCommand } from './command';
import { addExternalIdentityCommands } from './external-identity-commands';
import { addKeyCommands } from './key-commands';
import { addPasswordCommands } from './password-commands';
import { addRevocationCommands } from './revocation-commands';
import { addSessionCommands } from './session-commands';
import { addSecretCommands } from './secret-commands';
import { addUserCommands } from './user-commands';

/**
 * Administration connects as the role that owns the tables, because the service's role may not change
 * applications.
 */
export const adminConfigSchema = z
  .object({
    ...ownerAddressShape,
    ...sealingKeyShape,
  })
  .refine((config) => (config.MIGRATION_DATABASE_URL ?? config.DATABASE_URL) !== undefined, {
    path: ['MIGRATION_DATABASE_URL'],
    message: 'or DATABASE_URL is required',
  })
  .superRefine((config, context) => {
    // Checks the keys only if there are any, because most commands need none.
    if (sealingKeys(config).length > 0) checkSealingKeys(config, context);
  });

const EPILOGUE = `
Run it:
  on the platform that npm start runs:   npm run --silent auth:admin -- <command> [options]
  in the image:                          node admin.js <command> [options]

Exit codes: 0 done, 1 refused or failed, 2 wrong command line.
Environment: MIGRATION_DATABASE_URL (or DATABASE_URL) as the role that owns the tables, and SECRET_ENCRYPTION_KEYS (or
SECRET_ENCRYPTION_KEY), the same as the service has, for commands that seal or open secrets.`;

/** Output of a command. */
export interface AdminOutput {
  out: (text: string) => void | Promise<void>;
  err: (text: string) => void;
}

/**
 * Runs one command line.
 * @param env the process's environment by default
 * @returns the exit code: 0 done, 1 refused or failed, 2 wrong command line
 */
export async function administer(
  args: readonly string[],
  output: AdminOutput,
  env?: NodeJS.ProcessEnv,
): Promise<0 | 1 | 2> {
  const isJson = args.includes('--json');
  let help = Promise.resolve();
  const shown = new Set<CommandResult>();
  const show = async (result: CommandResult): Promise<void> => {
    await output.out(isJson ? JSON.stringify(result.json, null, 2) : result.text);
    shown.add(result);
  };
  const showHelp = (text: string): void => {
    help = Promise.resolve(output.out(text));
    // helpShown handles the rejection. Until it does, this handler prevents an unhandled rejection.
    help.catch(() => undefined);
  };
  const program = administrationProgram({ out: showHelp }, async (work) => {
    const result = await connected(work, { output, show, env });
    if (!shown.has(result)) await show(result);
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return await helpShown(help, output);
    const message = error instanceof CommanderError ? usageError(error, program) : describe(error);
    output.err(isJson ? JSON.stringify({ error: message }) : `✘ ${message}`);
    return error instanceof CommanderError ? 2 : 1;
  }
}

async function helpShown(help: Promise<void>, { err }: AdminOutput): Promise<0 | 1> {
  try {
    await help;
    return 0;
  } catch (error) {
    err(`✘ ${describe(error)}`);
    return 1;
  }
}

/** Builds the whole command line. Each group of commands has its own file and one line here. */
export function administrationProgram({ out }: { out: (text: string) => void }, run: RunCommand): Command {
  const program = new Command('admin')
    .description('Administration of the authentication service.')
    .option('--json', 'print JSON')
    .configureHelp({ showGlobalOptions: true })
    // Errors are thrown, and administer() prints them.
    .configureOutput({ writeOut: (text) => out(text.trimEnd()), writeErr: () => undefined })
    .exitOverride();
  addApplicationCommands(program, run);
  addKeyCommands(program, run);
  addRevocationCommands(program, run);
  addSessionCommands(program, run);
  addSecretCommands(program, run);
  addExternalIdentityCommands(program, run);
  addPasswordCommands(program, run);
  addUserCommands(program, run);
  return program.addHelpText('after', `\nAll commands:\n${columns(overview(program))}\n${EPILOGUE}`);
}

function overview(program: Command): string[][] {
  return program.commands.flatMap((group) =>
    group.commands.map((command) => [
      `  ${group.name()} ${command.name()}`,
      command.summary() || command.description(),
    ]),
  );
}

async function connected(
  work: (context: CommandContext) => Promise<CommandResult>,
  {
    output,
    show,
    env,
  }: { output: AdminOutput; env: NodeJS.ProcessEnv | undefined } & Pick<CommandContext, 'show'>,
): Promise<CommandResult> {
  const config = loadConfig(adminConfigSchema, env);
  const applicationName = 'auth-service-admin';
  const inStore: CommandContext['inStore'] = (store, inside) =>
    withOwnerConnection(STORE_SCHEMAS[store], { url: ownerUrl(config, store), applicationName }, inside);
  return withOwnerConnection(AUTH_SCHEMA, { url: ownerUrl(config), applicationName }, (dataSource) =>
    work({ dataSource, secretBox: () => requiredBox(config), progress: output.err, show, inStore }),
  );
}

function requiredBox(config: z.output<typeof adminConfigSchema>): SecretBox {
  if (sealingKeys(config).length > 0) return secretBoxOf(config);
  throw new RefusedError(
    'SECRET_ENCRYPTION_KEYS or SECRET_ENCRYPTION_KEY is required: the same as the service has',
  );
}

/** Describes a wrong command line in one line. */
function usageError({ code, message }: CommanderError, program: Command): string {
  const [group] = program.args;
  const named = program.commands.find((each) => each.name() === group);
  const path = named === undefined ? '' : `${named.name()} `;
  if (code === 'commander.help') {
    const choices = (named ?? program).commands.map((each) => each.name()).join(', ');
    return `name a command${named === undefined ? '' : ` of ${named.name()}`}: one of ${choices}. See: ${path}--help`;
  }
  return `${message.replace(/^error: /, '').replaceAll('\n', ' ')}. See: ${path}--help`;
}

/**
 * Returns the message for the administrator. Database errors are shown without the statement and its
 * parameters.
 */
function describe(error: unknown): string {
  if (error instanceof RefusedError || error instanceof ConfigError) return error.message;
  if (isUniqueViolation(error))
    return 'another administrator made the same change at the same time: check the result, then try again';
  const message = error instanceof Error && error.message !== '' ? error.message : String(error);
  return databaseAdvice(error) ?? message;
}
