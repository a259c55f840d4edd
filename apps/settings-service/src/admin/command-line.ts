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
A file has one line of JSON per setting: subsystemName, settingName, and valueText, the exact text of the value.
Help for an action: settings:admin import --help

A setting that cannot be read or written is reported and skipped.

Exit codes: 0 done, 1 failed, a difference was found or a setting was skipped, 2 invalid arguments.
Reads DATABASE_URL.`;

const DESCRIPTIONS = {
  export: 'Write settings as lines, in the order of their names.',
  import:
    'Write the settings of a file that are missing here or have another value, with a history entry each. Nothing is deleted. Unchanged settings are skipped, so an interrupted import can be run again.',
  compare:
    'Show which settings of a file are missing here (+) or have another value (~), and which exist only here (-).',
  restore:
    'Restore a subsystem of any size to an instant, 1,000 settings per transaction, with a history entry each. Settings that differ \
are written (~), and settings that did not exist are deleted (-). Shows the changes and asks for confirmation. Can be run again after an interruption.',
} as const;

/**
 * Builds the parser of the command line.
 * @param run executes the parsed command
 * @param output receives help and error messages. Invalid arguments throw a CommanderError once the message
 * is written.
 */
export function adminProgram(
  run: (command: AdminCommand) => Promise<void>,
  output: { readonly write: (text: string) => void; readonly complain: (text: string) => void },
): Command {
  const program = new Command('settings:admin')
    .description('Moves settings between environments, and restores past settings.')
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
  command.description(DESCRIPTIONS[action]).option('--quiet', 'print only the summary');
  if (action === 'restore')
    command
      .argument('<subsystem>', 'its name')
      .argument('<instant>', 'ISO 8601 with an offset: 2026-03-02T09:15:00Z', parseInstant);
  else command.argument('[file]', `standard ${action === 'export' ? 'output' : 'input'} unless given`);
  if (action === 'restore')
    command
      .option('--yes', 'do not ask for confirmation; required without a terminal')
      .option(
        '--allow-empty',
        'restore even if the subsystem had no setting then: deletes all of its settings',
      );
  if (action === 'import' || action === 'restore')
    return command
      .option('--dry-run', 'only show what would be written')
      .option('--as <name>', 'author in the history entries', DEFAULT_AUTHOR);
  return command.option(
    '--subsystem <name>',
    `${action === 'export' ? 'only this subsystem' : 'this subsystem instead of those in the file'}; may be repeated`,
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
