import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { WORKSPACE } from '#platform/state-folder.ts';

/** A table that a tool writes into a page, between two marks. */
export interface WrittenTable {
  /** File name in docs/. */
  readonly page: string;
  /** The name in the marks. */
  readonly name: string;
  readonly command: string;
}

const costs = (name: string): WrittenTable => ({ page: 'performance.md', name, command: 'npm run costs' });
/** Costs of sequential requests, and of requests at saturation. */
export const REQUEST_COSTS = costs('costs');
/** Costs of requests at an ordinary pace, including the work that follows from them. */
export const PACED_COSTS = costs('paced costs');
/** Costs of idle processes. */
export const IDLE_COSTS = costs('idle costs');

/**
 * Reads the cells of each row by its first cell, including the heading.
 * @throws {Error} if the table is missing
 */
export function readTable(table: WrittenTable): Map<string, string[]> {
  const { text, from, to } = findTable(table);
  const lines = text.slice(from, to).split('\n');
  const rows = lines.filter((line) => line.startsWith('|')).map((line) => line.split('|'));
  return new Map(rows.map(([, name = '', ...cells]) => [name.trim(), cells.map((cell) => cell.trim())]));
}

/** Renders a Markdown table. All columns except the first are right-aligned. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = head.map((_title, column) => (column === 0 ? '---' : '---:'));
  return [line(head), line(rule), ...rows.map(line)];
}

/**
 * Locates a table: the text of its page, and the range between the marks.
 * @throws {Error} if there are no marks
 */
export function findTable({ page, name, command }: WrittenTable) {
  const file = join(WORKSPACE, 'docs', page);
  const text = readFileSync(file, 'utf8');
  const begin = `<!-- ${name}: written by ${command} -->`;
  const from = text.indexOf(begin) + begin.length;
  const to = text.indexOf(`<!-- end of ${name} -->`);
  if (from < begin.length || to < from) throw new Error(`docs/${page} has no table of ${name}`);
  return { file, text, from, to };
}
