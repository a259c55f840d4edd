import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { databaseAdvice } from '@platform/database';
import { ConfigError } from '@platform/service-defaults';
import { CommanderError } from 'commander';
import { loadSettingsAdminConfig } from '../config';
import type { AuditTrail } from '../settings/write-request';
import { adminProgram } from './command-line';
import type { AdminCommand } from './command-line';
import { SettingLineError, linesOf } from './setting-lines';
import { TransferService } from './transfer.service';
import type { Difference, Summary, TransferObserver } from './transfer.service';

/** Where the command line reads and writes besides its arguments. */
export interface AdminSurroundings {
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: Readable;
  readonly output?: Writable;
  readonly complain?: (text: string) => void;
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
    complain = (text) => void process.stderr.write(text),
  }: AdminSurroundings = {},
): Promise<0 | 1 | 2> {
  const write = (text: string): void => void output.write(text);
  let isDifferent = false;
  const execute = async (command: AdminCommand): Promise<void> => {
    const summary = await carryOut(command, { env, input, output, complain });
    isDifferent =
      command.action === 'compare' &&
      summary !== null &&
      summary.missing + summary.different + summary.extra > 0;
  };
  try {
    const words = args.length === 0 ? ['--help'] : args;
    await adminProgram(execute, { write, complain }).parseAsync(words, { from: 'user' });
  } catch (error) {
    // Its complaint is written already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const reason = explain(error);
    if (reason === null) throw error;
    complain(`settings:admin: ${reason}\n`);
    return 1;
  }
  return isDifferent ? 1 : 0;
}

async function carryOut(
  command: AdminCommand,
  { env, input, output, complain }: Surroundings,
): Promise<Summary | null> {
  const { action, file, subsystems } = command;
  const write = (text: string): void => void output.write(text);
  const transfer = await TransferService.connect(loadSettingsAdminConfig(env).DATABASE_URL);
  const observer = observerOf(command, write, complain);
  try {
    if (action === 'export') {
      const lines = Readable.from(transfer.exportLines(subsystems, observer));
      // Standard output stays open.
      await (file === null
        ? pipeline(lines, output, { end: false })
        : pipeline(lines, createWriteStream(file)));
      return null;
    }
    const trail = command.isDryRun ? null : trailOf(command);
    const lines = (): AsyncIterable<string> => linesOf(file === null ? input : createReadStream(file));
    const summary = await {
      import: () => transfer.import(lines(), trail, observer),
      compare: () => transfer.compare(lines(), subsystems, observer),
      restore: () => transfer.restore(subsystems[0]!, command.at, trail, observer),
    }[action]();
    write(`${summaryText(command, summary)}\n`);
    return summary;
  } finally {
    await transfer.close();
  }
}

/** One request id for all that a run writes. */
function trailOf({ author }: AdminCommand): AuditTrail {
  return {
    author: { subject: author, personId: null, userId: null, name: author, personas: 0 },
    ...{ requestId: randomUUID().replaceAll('-', ''), idempotencyKey: null },
  };
}

/** Differences go where the summary goes, progress to the side: standard output may be a file of settings. */
function observerOf(
  { isQuiet }: AdminCommand,
  write: (text: string) => void,
  complain: (text: string) => void,
): TransferObserver {
  return {
    differs: (difference, subsystemName, settingName) => {
      if (!isQuiet)
        write(`${MARKS[difference]} ${JSON.stringify(subsystemName)} ${JSON.stringify(settingName)}\n`);
    },
    progressed: (done) => {
      if (!isQuiet && done % PROGRESS_EVERY === 0) complain(`${done.toLocaleString('en')} settings\n`);
    },
  };
}

function summaryText(
  { action, isDryRun }: AdminCommand,
  { missing, different, same, extra }: Summary,
): string {
  const counts = (words: readonly [string, number][]): string =>
    words.map(([word, count]) => `${count.toLocaleString('en')} ${word}`).join(', ');
  if (action === 'compare')
    return counts([
      ['missing', missing],
      ['different', different],
      ['here only', extra],
      ['same', same],
    ]);
  if (action === 'restore')
    return counts([
      [isDryRun ? 'to write' : 'written', different],
      [isDryRun ? 'to delete' : 'deleted', extra],
      ['unchanged', same],
    ]);
  const words = isDryRun ? ['to create', 'to change'] : ['created', 'changed'];
  return counts([
    [words[0]!, missing],
    [words[1]!, different],
    ['unchanged', same],
  ]);
}

/** An operator's error in a sentence, without credentials; null for a defect. */
function explain(error: unknown): string | null {
  if (error instanceof ConfigError || error instanceof SettingLineError) return error.message;
  const { code, path } = error as NodeJS.ErrnoException;
  if (path !== undefined && code !== undefined) return `${path}: ${code}`;
  return databaseAdvice(error);
}
