import { Command, InvalidArgumentError } from 'commander';
import { FriendlyError } from './errors.ts';

/** A mistake in the command line, with a message for the user. */
export class ArgumentsError extends Error {}

/**
 * Creates the parser of a command line; for invalid arguments it throws ArgumentsError.
 * @param name of the command as users type it, e.g. `npm start`
 */
export function commandLine(name: string, usage: string, description: string): Command {
  return new Command(name)
    .usage(usage)
    .description(description)
    .helpOption('-h, --help', 'this text')
    .configureHelp({
      argumentDescription: ({ description }) => description,
      // Only strings and numbers show their default: a flag is always off by default.
      optionDescription: ({ description, defaultValue }) =>
        ['string', 'number'].includes(typeof defaultValue) ? `${description} (${defaultValue})` : description,
    })
    .configureOutput({ writeErr: () => undefined })
    .exitOverride(({ exitCode, message }) => {
      if (exitCode === 0) process.exit(0);
      throw new ArgumentsError(
        `${message.replace(/^error: /, '')}\nUsage: ${name} ${usage}; see ${name} -- --help`,
      );
    });
}

/** Parses an option's value as a whole number of at most nine digits. @throws {InvalidArgumentError} */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/**
 * Returns the parser of an option whose value is a list of `known` names, separated by commas.
 * @throws {InvalidArgumentError} listing the known names
 */
export function someOf<T extends string>(known: readonly T[]): (list: string) => T[] {
  return (list) =>
    list.split(',').map((name) => {
      const found = known.find((one) => one === name);
      if (found === undefined)
        throw new InvalidArgumentError(`Allowed, separated by commas: ${known.join(', ')}.`);
      return found;
    });
}

/**
 * Runs a program. If it throws, prints the error and exits: with 2 for a mistake in the command line,
 * otherwise with `failure`.
 */
export function runMain(main: () => void | Promise<void>, failure = 1): void {
  Promise.resolve()
    .then(main)
    .catch((error: unknown) => {
      complain(error);
      process.exit(error instanceof ArgumentsError ? 2 : failure);
    });
}

/** Prints an error, without its stack if its message is written for the user. */
export function complain(error: unknown): void {
  const isForUser = error instanceof FriendlyError || error instanceof ArgumentsError;
  console.error(isForUser ? `✘ ${error.message}` : error);
}

/** Calls `end` on the signals that request termination. */
export function onEndSignal(end: (signal: NodeJS.Signals) => void): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => end(signal));
}

/** Returns a function that prints a line after the seconds since this call. */
export function timedReport(): (line: string) => void {
  const startedAtMs = performance.now();
  return (line) =>
    console.log(`${((performance.now() - startedAtMs) / 1_000).toFixed(1).padStart(7)} s  ${line}`);
}

/** A cell that holds a figure: `12`, `-0.5`, `3 %`, `1.5 ms`. */
const FIGURE = /^-?[\d.]+( [%a-zA-Zµ]\S*)?$/;

/**
 * Returns the lines of a table whose columns are as wide as their content. Columns of figures are aligned
 * right.
 */
export function textTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const isOfFigures = head.map((_title, column) => rows.every((row) => FIGURE.test(row[column] ?? '')));
  const padded = (cell: string, column: number): string => {
    const width = widths[column] ?? 0;
    return isOfFigures[column] === true ? cell.padStart(width) : cell.padEnd(width);
  };
  const line = (cells: readonly string[]): string => cells.map(padded).join('  ').trimEnd();
  return [line(head), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)];
}
