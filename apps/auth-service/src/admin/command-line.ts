import { parseArgs } from 'node:util';
import type { Command, CommandContext, CommandGroup, CommandOption, CommandResult } from './command';
import { UsageError } from './command';
import { commandHelp, groupHelp, overview } from './help';

/** What a command line asks for. */
export type Request =
  | { kind: 'help'; text: string }
  | { kind: 'run'; isJson: boolean; run: (context: CommandContext) => Promise<CommandResult> };

const GLOBAL_OPTIONS: readonly CommandOption[] = [
  { name: 'json', meaning: '' },
  { name: 'help', meaning: '' },
];

/** Takes a command line apart. @param args without program and script @throws {UsageError} */
export function parseCommandLine(args: readonly string[], groups: readonly CommandGroup[]): Request {
  const [groupName, commandName, ...rest] = args;
  if (isHelp(groupName)) return { kind: 'help', text: overview(groups) };
  const group = choose('command', groupName, groups, '');
  if (isHelp(commandName)) return { kind: 'help', text: groupHelp(group) };
  const command = choose(`command of ${group.name}`, commandName, group.commands, `${group.name} `);
  const { values, positionals } = parseOptions(group, command, rest);
  if (values['help'] === true) return { kind: 'help', text: commandHelp(group, command) };
  if (positionals.length !== command.positionals.length) {
    const wanted = command.positionals.map(({ name }) => `<${name}>`).join(' ') || 'no arguments';
    throw new UsageError(
      `${group.name} ${command.name} takes ${wanted}${seeHelp(`${group.name} ${command.name} `)}`,
    );
  }
  const run = command.prepare({ positionals, options: values });
  return { kind: 'run', isJson: values['json'] === true, run };
}

/** True when a command line asks for JSON, even one that cannot be understood otherwise. */
export function wantsJson(args: readonly string[]): boolean {
  return args.includes('--json');
}

function isHelp(word: string | undefined): boolean {
  return word === '--help' || word === '-h' || word === 'help';
}

function choose<T extends { name: string }>(
  what: string,
  name: string | undefined,
  among: readonly T[],
  path: string,
): T {
  const found = among.find((each) => each.name === name);
  if (found !== undefined) return found;
  const names = among.map((each) => each.name).join(', ');
  const problem =
    name === undefined || name.startsWith('-') ? `name a ${what}` : `there is no ${what} "${name}"`;
  throw new UsageError(`${problem}: one of ${names}${seeHelp(path)}`);
}

function parseOptions(group: CommandGroup, command: Command, args: readonly string[]) {
  const options = Object.fromEntries(
    [...command.options, ...GLOBAL_OPTIONS].map(({ name, value }) => [
      name,
      value === undefined
        ? { type: 'boolean' as const, ...(name === 'help' ? { short: 'h' } : {}) }
        : { type: 'string' as const },
    ]),
  );
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // Its first sentence says what is wrong; the rest explains how to escape dashes.
    const message = error instanceof Error ? error.message.split(/\. |\n/)[0]! : String(error);
    throw new UsageError(`${message}${seeHelp(`${group.name} ${command.name} `)}`, { cause: error });
  }
}

function seeHelp(path: string): string {
  return `. See: ${path}--help`;
}
