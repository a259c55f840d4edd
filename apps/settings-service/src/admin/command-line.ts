import { SYSTEM_CLOCK } from '@platform/time';
import { Command, InvalidArgumentError } from 'commander';
import { instant } from '../settings/instant';

/** A parsed command. */
export interface AdminCommand {
  readonly action: 'export' | 'import' | 'compare' | 'restore';
  /** Path of the file to read or write. Null means standard input or output. */
  readonly file: string | null;
  readonly subsystems: readonly string[];
  /** The instant that a restoration returns to. An invalid Date for other actions. */
  readonly at: Date;
  readonly isDryRun: boolean;
  /** The author recorded in the history entries. */
  readonly author: string;
  readonly isQuiet: boolean;
  /** Whether `--yes` was passed: restore without a confirmation prompt. */
  readonly isAgreed: boolean;
  /** Whether a subsystem may be restored to an instant at which it had no setting. */
  readonly mayEmpty: boolean;
}

interface Options {
  subsystem?: string[];
  dryRun?: boolean;
  as?: string;
  quiet?: boolean;
  yes?: boolean;
  allowEmpty?: boolean;
}

const DEFAULT_AUTHOR = 'settings:admin';

const EPILOGUE = `
A file has a line of JSON for each setting: subsystemName, settingName, and valueText, the exact text of the value.
Every action explains itself: settings:admin import --help

A setting that cannot be read or written is named and left out; the others go on.

Exit codes: 0 done, 1 failed or different, or a setting was left out, 2 the command was not understood.
Reads DATABASE_URL.`;

const DESCRIPTIONS = {
  export: 'Write settings as lines, in the order of their names.',
  import:
    'Write the settings of a file that are missing here or have another value, with a history entry each. Nothing is deleted. What is the same is left alone: run an import that was interrupted again, and it goes on.',
  compare:
    'Say which settings of a file are missing here (+) or have another value (~), and which are here only (-).',
  restore:
    'Make a subsystem what it was at an instant, of any size, a thousand settings in one transaction, with a history entry each: what \
differs now is written again (~), what was not there is deleted (-). It shows what it will do and asks first. Interrupted, run it again: it goes on.',
} as const;

/**
 * Builds the parser of the command line.
 * @param run executes the parsed command
 * @param output receives help and error messages; invalid arguments throw a CommanderError after the message
 */
export function adminProgram(
  run: (command: AdminCommand) => Promise<void>,
  output: { readonly write: (text: string) => void; readonly complain: (text: string) => void },
): Command {
  const program = new Command('settings:admin')
    .description('Moves settings between environments, and back in time.')
    .configureOutput({ writeOut: output.write, writeErr: output.complain })
    .showHelpAfterError('Try settings:admin --help')
    .exitOverride()
    .addHelpText('after', EPILOGUE);
  for (const action of ['export', 'import', 'compare', 'restore'] as const) {
    const command = describe(program.command(action), action);
    command.action(async () => {
      const options = command.opts<Options>();
      const [first, at] = command.processedArgs as [string?, Date?];
      await run({
        action,
        file: action === 'restore' ? null : (first ?? null),
        subsystems: options.subsystem ?? (action === 'restore' ? [first!] : []),
        at: at ?? new Date(NaN),
        isDryRun: options.dryRun ?? false,
        author: options.as ?? DEFAULT_AUTHOR,
        isQuiet: options.quiet ?? false,
        isAgreed: options.yes ?? false,
        mayEmpty: options.allowEmpty ?? false,
      });
    });
  }
  return program;
}

function describe(command: Command, action: AdminCommand['action']): Command {
  command.description(DESCRIPTIONS[action]).option('--quiet', 'no progress and no names, only the summary');
  if (action === 'restore')
    command
      .argument('<subsystem>', 'its name')
      .argument('<instant>', 'ISO 8601 with an offset: 2026-03-02T09:15:00Z', parseInstant);
  else command.argument('[file]', `standard ${action === 'export' ? 'output' : 'input'} unless given`);
  if (action === 'restore')
    command
      .option('--yes', 'do not ask; required where there is no terminal to ask at')
      .option('--allow-empty', 'even if the subsystem had no setting then: all are deleted');
  if (action === 'import' || action === 'restore')
    return command
      .option('--dry-run', 'only say what would be written')
      .option('--as <name>', 'whom the history names', DEFAULT_AUTHOR);
  return command.option(
    '--subsystem <name>',
    `${action === 'export' ? 'only this subsystem' : 'this subsystem, in place of those in the file'}; may be repeated`,
    // One name per option: a variadic option would consume the file argument as another name.
    (name: string, before: readonly string[] = []) => [...before, name],
  );
}

function parseInstant(text: string): Date {
  const parsed = instant.safeParse(text);
  if (parsed.success && parsed.data > SYSTEM_CLOCK.now())
    throw new InvalidArgumentError('It must not be in the future.');
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError(`It ${parsed.error.issues[0]!.message}.`);
}
