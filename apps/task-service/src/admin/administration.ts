import type { Writable } from 'node:stream';
import { databaseAdvice } from '@platform/database';
import { BusUnavailableError, MessageReturnedError, PublishTimeoutError } from '@platform/messaging';
import { CommandError, ConfigError, textWriter } from '@platform/service-defaults';
import { CommanderError } from 'commander';
import { loadTaskAdminConfig } from '../config';
import { detailsText, tableText } from './admin-output';
import type { OutputRow } from './admin-output';
import { adminProgram } from './command-line';
import type { AdminCommand } from './command-line';
import { administerOutbox, administerQueues, readStatus } from './parked-messages.service';
import { reconcile } from './reconcile.service';

/** The environment and the output streams of the command line. */
export interface AdminSurroundings {
  readonly env?: NodeJS.ProcessEnv;
  /** Writes to standard output. May return a promise that settles once the text is written. */
  readonly write?: (text: string) => unknown;
  /** Writes to standard error. */
  readonly complain?: (text: string) => void;
}

const DONE = { replay: 'replayed', skip: 'skipped', move: 'moved', discard: 'discarded' } as const;
/** Items after which a long command reports its progress. */
const PROGRESS_STEP = 1_000;

/**
 * Runs the operator's command line. Returns the exit code: 0 done, 1 failed or not found, 2 not understood.
 */
export async function runAdmin(
  args: readonly string[],
  {
    env,
    write = textWriter(process.stdout),
    complain = complaintsTo(process.stderr),
  }: AdminSurroundings = {},
): Promise<0 | 1 | 2> {
  let missing: string[] = [];
  let help: Promise<unknown> = Promise.resolve();
  const execute = async (command: AdminCommand): Promise<void> => {
    const rows = await carryOut(command, env, (done) => {
      if (done % PROGRESS_STEP === 0) complain(`${String(done)} so far\n`);
    });
    await write(`${outputText(command, rows)}\n`);
    missing = missingIds(command, rows);
  };
  try {
    const showHelp = (text: string): void => {
      help = Promise.resolve(write(text));
      // Prevents an unhandled rejection; `failureOf` awaits `help`.
      help.catch(() => undefined);
    };
    const words = args.length === 0 ? ['--help'] : args;
    await adminProgram(execute, { write: showHelp, complain }).parseAsync(words, { from: 'user' });
  } catch (error) {
    const failure = await failureOf(error, help);
    // Commander has written the error message already.
    if (failure instanceof CommanderError) return failure.exitCode === 0 ? 0 : 2;
    complain(`task:admin: ${explain(failure)}\n`);
    return 1;
  }
  if (missing.length > 0) complain(`not found: ${missing.join(', ')}\n`);
  return missing.length > 0 ? 1 : 0;
}

/**
 * Returns the error to report: the failure to write the help text if there was one, else `error`. Commander
 * throws even after it has printed help, so `error` alone would look like success.
 */
async function failureOf(error: unknown, help: Promise<unknown>): Promise<unknown> {
  try {
    await help;
    return error;
  } catch (unwritten) {
    return unwritten;
  }
}

/** Returns a writer that ignores write errors: there is nowhere left to report them. */
function complaintsTo(stream: Writable): (text: string) => void {
  const write = textWriter(stream);
  return (text) => void write(text).catch(() => undefined);
}

function carryOut(
  command: AdminCommand,
  env: NodeJS.ProcessEnv | undefined,
  progress: (done: number) => void,
): Promise<OutputRow[]> {
  const config = loadTaskAdminConfig(env);
  const { DATABASE_URL, RABBITMQ_MAIN_URL: main, RABBITMQ_SCHEDULING_URL: scheduling } = config;
  if (command.subject === 'status') return readStatus(DATABASE_URL, { main, scheduling });
  if (command.subject === 'reconcile') return reconcile(command, config, progress);
  if (command.subject === 'outbox') return administerOutbox(command, DATABASE_URL, progress);
  return administerQueues(command, { main, scheduling }, progress);
}

function outputText({ subject, action, isJson, isDryRun }: AdminCommand, rows: readonly OutputRow[]): string {
  if (isJson) return JSON.stringify(rows, null, 2);
  if (subject === 'reconcile') {
    const summary = `${String(rows.length)} found${isDryRun ? '; nothing was changed (--apply)' : ''}`;
    return rows.length === 0 ? summary : `${tableText(rows)}\n${summary}`;
  }
  if (action === 'show') return rows.map(detailsText).join('\n\n');
  if (action === 'list') return tableText(rows);
  const summary = `${String(rows.length)} ${isDryRun ? 'would be ' : ''}${DONE[action]}`;
  return rows.length === 0 ? summary : `${tableText(rows)}\n${summary}`;
}

function missingIds({ ids }: AdminCommand, rows: readonly OutputRow[]): string[] {
  const found = new Set(rows.map(({ messageId }) => messageId));
  return [...(ids ?? [])].filter((id) => !found.has(id) && !found.has(id.toLowerCase()));
}

/** Returns an error as a sentence for the operator, without credentials. */
function explain(error: unknown): string {
  if (error instanceof ConfigError || error instanceof CommandError) return error.message;
  if (error instanceof BusUnavailableError || error instanceof PublishTimeoutError) return error.message;
  if (error instanceof MessageReturnedError)
    return 'the queue that the message belongs to does not exist; start the service once, so that it declares it';
  return databaseAdvice(error) ?? (error instanceof Error ? error.message : String(error));
}
