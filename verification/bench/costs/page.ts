import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { WORKSPACE } from '#platform/state-folder.ts';

/** A table that a tool writes into a page between two marks. */
export interface WrittenTable {
  /** In docs/. */
  readonly page: string;
  /** In the marks. */
  readonly name: string;
  readonly command: string;
}

const costs = (name: string): WrittenTable => ({ page: 'performance.md', name, command: 'npm run costs' });
/** Of requests one after the other, and of as many as go. */
export const REQUEST_COSTS = costs('costs');
/** Of requests at an ordinary pace, with everything that follows from them. */
export const PACED_COSTS = costs('paced costs');
/** Of processes without requests. */
export const IDLE_COSTS = costs('idle costs');

/**
 * The cells of each row by its first cell, the heading's row too. @throws {Error} where the page has no such
 * table
 */
export function readTable(table: WrittenTable): Map<string, string[]> {
  const { text, from, to } = findTable(table);
  const lines = text.slice(from, to).split('\n');
  const rows = lines.filter((line) => line.startsWith('|')).map((line) => line.split('|'));
  return new Map(rows.map(([, name = '', ...cells]) => [name.trim(), cells.map((cell) => cell.trim())]));
}

/** A table in Markdown, its figures to the right. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = head.map((_title, column) => (column === 0 ? '---' : '---:'));
  return [line(head), line(rule), ...rows.map(line)];
}

/**
 * Where a table is: its page, and what is between the marks. @throws {Error} where the page has no such marks
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
