import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { Option } from 'commander';
import type { Store } from '../identity/identity';
import { wrapDigest } from '../identity/passwords/password-hash';
import { BadLineError, readCsvHeader, readImportLine } from '../identity/passwords/password-import';
import type { ImportFormat, ImportedPassword } from '../identity/passwords/password-import';
import { PasswordImportRepository } from '../identity/passwords/password-import.repository';
import { STORE_SCHEMAS } from '../migrations/schemas';
import { RefusedError, columns, countUpTo } from './command';
import type { CommandContext, CommandResult, RunCommand } from './command';

const BATCH = 500;
const MAX_LINES = 999_999_999;

interface ImportOptions {
  store: Store;
  format: ImportFormat;
  fromLine: number;
  replace?: true;
  dryRun?: true;
  badLines?: string;
}

export function addPasswordCommands(program: Command, run: RunCommand): void {
  program
    .command('passwords')
    .description('Passwords of the identity stores.')
    .command('import')
    .summary('Import password hashes from a file')
    .description(
      'Import password hashes from a file with userName and passwordHash a line: argon2id, bcrypt, ASP.NET Identity V2 and V3; ASP.NET ' +
        'membership with salt and digest (sha1 or sha256); MD5 and SHA-1 in hexadecimal, which are wrapped in argon2id. Accounts ' +
        'that have a password keep it, so an import that was interrupted can be run again.',
    )
    .argument('<file>', 'the file, in UTF-8')
    .addOption(
      new Option('--store <store>', 'the store of the accounts')
        .choices(Object.keys(STORE_SCHEMAS))
        .makeOptionMandatory(),
    )
    .addOption(new Option('--format <format>', 'of the file').choices(['csv', 'ndjson']).default('csv'))
    .option('--from-line <number>', 'begin with this line', countUpTo(MAX_LINES), 1)
    .option('--replace', 'replace existing passwords')
    .option('--dry-run', 'read and check everything, change nothing')
    .option(
      '--bad-lines <file>',
      'write the lines that cannot be imported to this file, each with its number and problem',
    )
    .action((file: string, options: ImportOptions) =>
      run((context) =>
        context.inStore(options.store, (store) => importFile(file, options, { store, context })),
      ),
    );
}

interface Target {
  store: Parameters<Parameters<CommandContext['inStore']>[1]>[0];
  context: CommandContext;
}

async function importFile(
  file: string,
  options: ImportOptions,
  { store, context }: Target,
): Promise<CommandResult> {
  const report = new ImportReport();
  const passwords = new PasswordImportRepository(store, options.store);
  let batch: { line: number; password: ImportedPassword }[] = [];
  const flush = async (line: number): Promise<void> => {
    await importBatch(passwords, batch, { ...options, report });
    batch = [];
    context.progress(`line ${String(line)}: ${report.summary()}`);
  };
  let last = 0;
  for await (const { line, password } of readPasswords(file, options, report)) {
    batch.push({ line, password });
    last = line;
    if (batch.length === BATCH) await flush(line);
  }
  if (batch.length > 0) await flush(last);
  if (options.badLines !== undefined) {
    const rows = report.badLines.map((each) => `${JSON.stringify(each)}\n`);
    await writeFile(options.badLines, rows.join(''), { mode: 0o600 });
  }
  const { badLines, ...counts } = report;
  return {
    json: { dryRun: options.dryRun ?? false, ...counts, badLines },
    text: columns([
      [options.dryRun === true ? 'Nothing was changed. It would be:' : 'Imported.', report.summary()],
      ...badLines.slice(0, 20).map(({ line, problem }) => [`line ${String(line)}`, problem]),
    ]),
  };
}

/** Counts of imported and skipped lines, and the bad lines. */
class ImportReport {
  imported = 0;
  /** Accounts that already have a password and keep it. */
  kept = 0;
  readonly badLines: { line: number; problem: string }[] = [];

  summary(): string {
    return `${this.imported} imported, ${this.kept} already with a password, ${this.badLines.length} bad lines`;
  }
}

async function* readPasswords(
  file: string,
  { format, fromLine }: ImportOptions,
  report: ImportReport,
): AsyncGenerator<{ line: number; password: ImportedPassword }> {
  let header: string[] | null = null;
  let line = 0;
  for await (const text of linesOf(file)) {
    line += 1;
    try {
      if (format === 'csv' && line === 1) header = readCsvHeader(text);
      else if (line >= fromLine && text.trim() !== '') yield { line, password: readImportLine(text, header) };
    } catch (error) {
      if (!(error instanceof BadLineError)) throw error;
      if (format === 'csv' && line === 1) throw new RefusedError(error.message);
      report.badLines.push({ line, problem: error.message });
    }
  }
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const input = createReadStream(file, 'utf8');
  const opened = new Promise<void>((resolve, reject) => {
    input.once('open', () => {
      resolve();
    });
    input.once('error', reject);
  });
  try {
    await opened;
  } catch (error) {
    throw new RefusedError(`the file cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`);
  }
  yield* createInterface({ input, crlfDelay: Infinity });
}

async function importBatch(
  passwords: PasswordImportRepository,
  batch: readonly { line: number; password: ImportedPassword }[],
  { replace, dryRun, report }: ImportOptions & { report: ImportReport },
): Promise<void> {
  const accounts = await passwords.find(batch.map(({ password }) => password.userNameKey));
  const wanted = new Map<string, ImportedPassword>();
  for (const { line, password } of batch) {
    const hasPassword = accounts.get(password.userNameKey);
    if (hasPassword === undefined) report.badLines.push({ line, problem: 'no such account' });
    else if (wanted.has(password.userNameKey))
      report.badLines.push({ line, problem: 'the account occurs twice in the file' });
    else if (hasPassword && replace !== true) report.kept += 1;
    else wanted.set(password.userNameKey, password);
  }
  report.imported += wanted.size;
  if (dryRun === true) return;
  const hashes = await Promise.all(
    [...wanted.values()].map(async ({ userNameKey, hash }) => ({
      userNameKey,
      hash: typeof hash === 'string' ? hash : await wrapDigest(hash.unsalted, hash.digest),
    })),
  );
  await passwords.write(hashes, replace === true);
}
