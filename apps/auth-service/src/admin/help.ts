import type { Command, CommandGroup, CommandOption } from './command';
import { columns } from './columns';

const JSON_OPTION: CommandOption = { name: 'json', meaning: 'print JSON' };
const HELP_OPTION: CommandOption = { name: 'help', meaning: 'this text' };

/** What there is. */
export function overview(groups: readonly CommandGroup[]): string {
  const commands = groups.flatMap((group) =>
    group.commands.map((command) => [`  ${usage(group, command)}`, command.summary]),
  );
  return [
    'Administration of the authentication service.',
    '',
    'Usage: <command> [options]',
    '  on the platform that npm start runs:   npm run --silent auth:admin -- <command> [options]',
    '  in the image:                          node admin.js <command> [options]',
    '',
    'Commands:',
    columns(commands),
    '',
    'Every command takes --help and --json.',
    'Exit codes: 0 done, 1 refused or failed, 2 wrong command line.',
    'Environment: MIGRATION_DATABASE_URL (or DATABASE_URL) as the role that owns the tables, and SECRET_ENCRYPTION_KEY, the same as',
    'the service has, where a secret is made.',
  ].join('\n');
}

/** The commands on one subject. */
export function groupHelp(group: CommandGroup): string {
  const commands = group.commands.map((command) => [`  ${usage(group, command)}`, command.summary]);
  return [group.summary, '', 'Commands:', columns(commands)].join('\n');
}

/** Everything about one command. */
export function commandHelp(group: CommandGroup, command: Command): string {
  const positionals = command.positionals.map(({ name, meaning }) => [`  <${name}>`, meaning]);
  const options = [...command.options, JSON_OPTION, HELP_OPTION].map((option) => [
    `  --${option.name}${option.value === undefined ? '' : ` <${option.value}>`}`,
    option.meaning,
  ]);
  return [
    `Usage: ${usage(group, command)} [options]`,
    '',
    `${command.summary}.`,
    ...(command.notes === undefined ? [] : ['', command.notes]),
    '',
    columns([...positionals, ...options]),
  ].join('\n');
}

function usage(group: CommandGroup, command: Command): string {
  return [group.name, command.name, ...command.positionals.map(({ name }) => `<${name}>`)].join(' ');
}
