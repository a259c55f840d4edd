import { writeFileSync } from 'node:fs';
import { format } from 'prettier';
import { findTable, type WrittenTable } from './page.ts';

/**
 * Writes lines, e.g. of a table, between the marks of a page.
 * @throws {Error} if the page has no such marks
 */
export async function writeBetweenMarks(table: WrittenTable, lines: readonly string[]): Promise<void> {
  const { file, text, from, to } = findTable(table);
  const written = `${text.slice(0, from)}\n\n${lines.join('\n')}\n\n${text.slice(to)}`;
  writeFileSync(file, await format(written, { parser: 'markdown' }));
}
