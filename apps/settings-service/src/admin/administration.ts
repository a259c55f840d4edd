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
import { SettingError } from '../settings/setting-problems.filter';
import type { AuditTrail } from '../settings/write-request';
import { adminProgram } from './command-line';
import type { AdminCommand } from './command-line';
import { restore } from './restore-command';
import { SettingLineError, linesOf } from './setting-lines';
import { summaryText } from './summary-text';
import { TransferService } from './transfer.service';
import type { Difference, Summary, TransferObserver } from './transfer.service';

/** Where the command line reads and writes besides its arguments. */
export interface AdminSurroundings {
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: Readable;
  readonly output?: Writable;
  readonly complain?: (text: string) => void;
  /** Asks the operator; null where there is nobody to ask. */
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

/** The operator's command line. Returns the exit code: 0 done, 1 failed or different, 2 not understood. */
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
      // Awaited below.
      help.catch(() => undefined);
    };
    await adminProgram(execute, { write: showHelp, complain }).parseAsync(words, { from: 'user' });
  } catch (error) {
    const failure = await failureOf(error, help);
    // Its complaint is written already.
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

/** Help ends in an error too; that it could not be written counts more. */
function failureOf(error: unknown, help: Promise<void>): Promise<unknown> {
  return help.then(
    () => error,
    (unwritten: unknown) => unwritten,
  );
}

/** There is nowhere else to complain. */
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

/** @returns whether a comparison found a difference, or a setting could not be read or written */
async function carryOut(
  command: AdminCommand,
  { env, input, output, complain, ask }: Surroundings,
): Promise<boolean> {
  const { action, file, subsystems } = command;
  const write = textWriter(output);
  // Lines are written one after the other. `written` settles when all are, and rejects with the first
  // failure.
  let written = Promise.resolve();
  const writeLine = (text: string): void => {
    const line = write(text);
    written = written.then(() => line);
    // Whoever awaits `written` hears of it.
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

/** Into the file, or else to the standard output, which stays open. */
function writeLines(lines: Readable, file: string | null, output: Writable): Promise<void> {
  return file === null ? pipeline(lines, output, { end: false }) : pipeline(lines, createWriteStream(file));
}

/** One request id for all that a run writes. */
function trailOf({ author }: AdminCommand): AuditTrail {
  return {
    author: { subject: author, personId: null, userId: null, name: author, personas: 0 },
    requestId: randomUUID().replaceAll('-', ''),
    idempotencyKey: null,
  };
}

/**
 * Differences go where the summary goes, progress and failures to the side: standard output may be a file of
 * settings. @param failures collects the names of settings that cannot be read or written
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
      // A command may meet it twice: when it plans, and when it acts.
      if (!failures.has(names)) complain(`settings:admin: ${names} is left as it is: ${explain(error)}\n`);
      failures.add(names);
    },
    progressed: (done) => {
      if (!isQuiet && done % PROGRESS_EVERY === 0) complain(`${done.toLocaleString('en')} settings\n`);
    },
  };
}

/** An operator's error in a sentence, without credentials. */
function explain(error: unknown): string {
  if (error instanceof ConfigError || error instanceof SettingLineError || error instanceof CommandError)
    return error.message;
  if (error instanceof SettingError && error.problem.detail !== undefined) return error.problem.detail;
  const { code, path, message } = error as NodeJS.ErrnoException;
  if (path !== undefined && code !== undefined) return `${path}: ${code}`;
  if (code === 'EPIPE' || code === 'ENOSPC') return `the output cannot be written (${code})`;
  return databaseAdvice(error) ?? message;
}
