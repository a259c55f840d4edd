import type { AdminCommand } from './command-line';
import type { Summary } from './transfer.service';

/** Returns the counts of what was done, or of what would be in a dry run, as one line. */
export function summaryText(
  { action, isDryRun }: AdminCommand,
  { missing, different, same, extra, failed }: Summary,
): string {
  const counts = (words: readonly [string, number][]): string =>
    words.map(([word, count]) => `${count.toLocaleString('en')} ${word}`).join(', ');
  if (action === 'compare')
    return counts([
      ['missing', missing],
      ['different', different],
      ['here only', extra],
      ['same', same],
    ]);
  if (action === 'restore') {
    const done: [string, number][] = [
      [isDryRun ? 'to write' : 'written', different],
      [isDryRun ? 'to delete' : 'deleted', extra],
      ['unchanged', same],
    ];
    return counts(failed === 0 ? done : [...done, ['failed', failed]]);
  }
  const words = isDryRun ? ['to create', 'to change'] : ['created', 'changed'];
  return counts([
    [words[0]!, missing],
    [words[1]!, different],
    ['unchanged', same],
  ]);
}
