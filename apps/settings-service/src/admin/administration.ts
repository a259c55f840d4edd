import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import type { Writable } from 'node:stream';
import { createInterface } from 'node:readline/promises';
import { pipeline } from 'node:stream/promises';
import { databaseAdvice } from '@platform/database';
import { CommandError, ConfigError, textWriter } from '@platform/service-defaults';
import { CommanderError } from 'commander';
import { loadSettingsAdminConfig } from '../config';
import { SettingError } from '../settings/setting-error';
import { SETTING_PROBLEMS } from '../settings/setting-problems';
import type { AuditTrail } from '../settings/write-request';
import { adminProgram } from './command-line';
import type { AdminCommand } from './command-line';
import { restore } from './restore-command';
import { SettingLineError, linesOf } from './setting-lines';
import { summaryText } from './summary-text';
import { TransferService } from './transfer.service';
import type { Difference, Summary, TransferObserver } from './transfer.service';

/** The streams and environment of the command line. Tests replace them. */
export interface AdminSurroundings {
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: Readable;
  readonly output?: Writable;
  readonly complain?: (text: string) => void;
  /** Asks the operator to confirm. Null if standard input is not a terminal. */
  readonly ask?: ((question: string) => Promise<boolean>) | null;
}

interface Surroundings extends Required<Omit<AdminSurroundings, 'env'>> {
  readonly env: NodeJS.ProcessEnv | undefined;
}

const PROGRESS_EVERY = 10_000;
const MARKS: Readonly<Record<Exclude<Difference, 'same'>, string>> = {
  missing: '+',
  different: '~',
  extra: '-',
};

/**
 * Runs the operator's command line.
 * @returns the exit code: 0 done, 1 failed or a difference was found, 2 the arguments are not valid
 */
export async function runAdmin(
  args: readonly string[],
  {
    env,
    input = process.stdin,
    output = process.stdout,
    complain = complaintsTo(process.stderr),
    ask = input === process.stdin && process.stdin.isTTY ? askAtTerminal : null,
  }: AdminSurroundings = {},
): Promise<0 | 1 | 2> {
  const write = textWriter(output);
  let help = Promise.resolve();
  let isIncomplete = false;
  const execute = async (command: AdminCommand): Promise<void> => {
    isIncomplete = await carryOut(command, { env, input, output, complain, ask });
  };
  try {
    const words = args.length === 0 ? ['--help'] : args;
    const showHelp = (text: string): void => {
      help = write(text);
      // Handled by `failureOf`; this only prevents an unhandled rejection.
      help.catch(() => undefined);
    };
    await adminProgram(execute, { write: showHelp, complain }).parseAsync(words, { from: 'user' });
  } catch (error) {
    const failure = await failureOf(error, help);
    // Commander has already written its message.
    if (failure instanceof CommanderError) return failure.exitCode === 0 ? 0 : 2;
    complain(`settings:admin: ${explain(failure)}\n`);
    return 1;
  }
  return isIncomplete ? 1 : 0;
}

/** Whether a comparison found a difference. */
function isDifferent({ action }: AdminCommand, { missing, different, extra }: Summary): boolean {
  return action === 'compare' && missing + different + extra > 0;
}

/**
 * Returns the error to report: the failure to write the help text if there was one, else `error`. Commander
 * throws even after it has printed help, so `error` alone would look like success.
 */
function failureOf(error: unknown, help: Promise<void>): Promise<unknown> {
  return help.then(
    () => error,
    (unwritten: unknown) => unwritten,
  );
}

/** Writes messages to the stream. A failed write is ignored: there is nowhere left to report it. */
function complaintsTo(stream: Writable): (text: string) => void {
  const write = textWriter(stream);
  return (text) => void write(text).catch(() => undefined);
}

async function askAtTerminal(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
  }
}

/**
 * Runs one command.
 * @returns true if a comparison found a difference, or a setting could not be read or written
 */
async function carryOut(
  command: AdminCommand,
  { env, input, output, complain, ask }: Surroundings,
): Promise<boolean> {
  const { action, file, subsystems } = command;
  const write = textWriter(output);
  // Lines are written in order. `written` settles when all of them are, and rejects with the first failure.
  let written = Promise.resolve();
  const writeLine = (text: string): void => {
    const line = write(text);
    written = written.then(() => line);
    // `written` is awaited below and reports the failure; this only prevents unhandled rejections.
    for (const each of [line, written]) each.catch(() => undefined);
  };
  const transfer = await TransferService.connect(loadSettingsAdminConfig(env).DATABASE_URL);
  const failures = new Set<string>();
  const observer = observerOf(command, writeLine, complain, failures);
  try {
    if (action === 'export') {
      await writeLines(Readable.from(transfer.exportLines(subsystems, observer)), file, output);
      return failures.size > 0;
    }
    const writeAfter = (text: string): Promise<void> => written.then(() => write(text));
    const trail = command.isDryRun ? null : trailOf(command);
    const lines = (): AsyncIterable<string> => linesOf(file === null ? input : createReadStream(file));
    const summary = await {
      import: () => transfer.import(lines(), trail, observer),
      compare: () => transfer.compare(lines(), subsystems, observer),
      restore: () => restore(transfer, command, trail, { write: writeAfter, observer, ask }),
    }[action]();
    await written;
    await write(`${summaryText(command, summary)}\n`);
    return failures.size > 0 || isDifferent(command, summary);
  } finally {
    await transfer.close();
  }
}

/** Writes the lines to the file. Without a file, writes to standard output and does not close it. */
function writeLines(lines: Readable, file: string | null, output: Writable): Promise<void> {
  return file === null ? pipeline(lines, output, { end: false }) : pipeline(lines, createWriteStream(file));
}

/** Returns the audit trail of one run. All its history entries share one request id. */
function trailOf({ author }: AdminCommand): AuditTrail {
  return {
    author: { subject: author, personId: null, userId: null, name: author, personas: 0 },
    requestId: randomUUID().replaceAll('-', ''),
    idempotencyKey: null,
  };
}

/**
 * Returns an observer that prints differences to the output, and progress and failures to standard error: the
 * output of an export is a file of settings.
 * @param failures collects the names of settings that cannot be read or written
 */
function observerOf(
  { isQuiet }: AdminCommand,
  write: (text: string) => void,
  complain: (text: string) => void,
  failures: Set<string>,
): TransferObserver {
  return {
    differs: (difference, subsystemName, settingName) => {
      if (!isQuiet)
        write(`${MARKS[difference]} ${JSON.stringify(subsystemName)} ${JSON.stringify(settingName)}\n`);
    },
    failed: (error, subsystemName, settingName) => {
      const names = `${JSON.stringify(subsystemName)} ${JSON.stringify(settingName)}`;
      // A restoration can fail on the same setting twice: when it plans and when it writes.
      if (!failures.has(names)) complain(`settings:admin: ${names} is left as it is: ${explain(error)}\n`);
      failures.add(names);
    },
    progressed: (done) => {
      if (!isQuiet && done % PROGRESS_EVERY === 0) complain(`${done.toLocaleString('en')} settings\n`);
    },
  };
}

/** Returns a one-line message for the operator, without credentials. */
function explain(error: unknown): string {
  if (error instanceof ConfigError || error instanceof SettingLineError || error instanceof CommandError)
    return error.message;
  if (error instanceof SettingError) return SETTING_PROBLEMS[error.reason].detail;
  const { code, path, message } = error as NodeJS.ErrnoException;
  if (path !== undefined && code !== undefined) return `${path}: ${code}`;
  if (code === 'EPIPE' || code === 'ENOSPC') return `the output cannot be written (${code})`;
  return databaseAdvice(error) ?? message;
}
