import type { DataSource } from 'typeorm';

/** What a command works with. */
export interface CommandContext {
  dataSource: DataSource;
  /** The key of sealed secrets. @throws {RefusedError} when the environment has none */
  encryptionKey: () => Buffer;
}

/** What a command has to say: as data (`--json`) and as text for people. Secrets in it are shown this once. */
export interface CommandResult {
  json: unknown;
  text: string;
}

/** The rest of a command line, taken apart. */
export interface CommandInput {
  positionals: readonly string[];
  /** Options by name; a flag is true or absent. */
  options: Readonly<Record<string, string | boolean | undefined>>;
}

/** An option as the command line has it. */
export interface CommandOption {
  name: string;
  /** What stands for its value in help texts; a flag has none. */
  value?: string;
  meaning: string;
}

/** One thing that an administrator can do. */
export interface Command {
  name: string;
  summary: string;
  positionals: readonly { name: string; meaning: string }[];
  options: readonly CommandOption[];
  /** What one should know before using it. */
  notes?: string;
  /** Reads the command line, before anything is connected. @throws {UsageError} */
  prepare: (input: CommandInput) => (context: CommandContext) => Promise<CommandResult>;
}

/** Commands on one subject. */
export interface CommandGroup {
  name: string;
  summary: string;
  commands: readonly Command[];
}

/** The command line is wrong. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command cannot be done, or not now; the message says why and what helps. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}
