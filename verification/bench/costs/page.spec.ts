import { IDLE_COSTS, markdownTable, PACED_COSTS, readTable, REQUEST_COSTS } from './page.ts';

describe('a table that a tool writes', () => {
  it.each([REQUEST_COSTS, PACED_COSTS, IDLE_COSTS])('exists on its page: $name', (table) => {
    expect(readTable(table).size).toBeGreaterThan(2);
  });

  it('is reported if missing', () => {
    expect(() => readTable({ ...PACED_COSTS, name: 'other costs' })).toThrow(
      'docs/performance.md has no table of other costs',
    );
  });

  it('is Markdown', () => {
    expect(markdownTable(['work', 'µs'], [['read', '5']])).toEqual([
      '| work | µs |',
      '| --- | ---: |',
      '| read | 5 |',
    ]);
  });
});
