import { Command } from 'commander';

/** A command that was understood. */
export interface AdminCommand {
  readonly action: 'export' | 'import' | 'compare';
  /** Null: standard input or output. */
  readonly file: string | null;
  readonly subsystems: readonly string[];
  readonly isDryRun: boolean;
  /** Whom the history names. */
  readonly author: string;
  readonly isQuiet: boolean;
}

interface Options {
  subsystem?: string[];
  dryRun?: boolean;
  as?: string;
  quiet?: boolean;
}

const DEFAULT_AUTHOR = 'settings:admin';

const EPILOGUE = `
A file has a line of JSON for each setting: subsystemName, settingName, and valueText, the exact text of the value.
Every action explains itself: settings:admin import --help

Exit codes: 0 done, 1 failed or different, 2 the command was not understood.
Reads DATABASE_URL.`;

const DESCRIPTIONS = {
  export: 'Write settings as lines, in the order of their names.',
  import:
    'Write the settings of a file that are missing here or have another value, with a history entry each. Nothing is deleted. What is the same is left alone: run an import that was interrupted again, and it goes on.',
  compare:
    'Say which settings of a file are missing here (+) or have another value (~), and which are here only (-).',
} as const;

/** The whole command line. @param run carries out what was understood
 *  @param output where help and complaints go; a wrong command line ends in a CommanderError after its complaint */
export function adminProgram(
  run: (command: AdminCommand) => Promise<void>,
  output: { readonly write: (text: string) => void; readonly complain: (text: string) => void },
): Command {
  const program = new Command('settings:admin')
    .description('Moves settings between environments.')
    .configureOutput({ writeOut: output.write, writeErr: output.complain })
    .showHelpAfterError('Try settings:admin --help')
    .exitOverride()
    .addHelpText('after', EPILOGUE);
  for (const action of ['export', 'import', 'compare'] as const) {
    const command = program.command(action).description(DESCRIPTIONS[action]);
    command.argument(
      '[file]',
      action === 'export' ? 'standard output unless given' : 'standard input unless given',
    );
    if (action !== 'import')
      command.option(
        '--subsystem <names...>',
        action === 'export' ? 'only these subsystems' : 'these subsystems, in place of those in the file',
      );
    if (action === 'import')
      command
        .option('--dry-run', 'only say what would be written')
        .option('--as <name>', 'whom the history names', DEFAULT_AUTHOR);
    command.option('--quiet', 'no progress and no names, only the summary');
    command.action(async () => {
      const options = command.opts<Options>();
      await run({
        action,
        file: command.args[0] ?? null,
        subsystems: options.subsystem ?? [],
        isDryRun: options.dryRun ?? false,
        author: options.as ?? DEFAULT_AUTHOR,
        isQuiet: options.quiet ?? false,
      });
    });
  }
  return program;
}
