import type { DataSource } from 'typeorm';

/** What a command works with. */
export interface CommandContext {
  dataSource: DataSource;
  /** The key of sealed secrets. @throws {RefusedError} when the environment has none */
  encryptionKey: () => Buffer;
}

/** What a command says: as data (`--json`) and as text for people. Secrets in it are shown this once. */
export interface CommandResult {
  json: unknown;
  text: string;
}

/** Connects, does the work of a command and prints its result. Called only once the whole command line is understood. */
export type RunCommand = (work: (context: CommandContext) => Promise<CommandResult>) => Promise<void>;

/** Rows of text, their cells aligned to columns two spaces apart; no spaces at line ends. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows)
    row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, cell.length)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd();
  return rows.map(line).join('\n');
}
