import { detailsText, tableText } from './admin-output';

describe('the output of the command line', () => {
  it('aligns columns under their names', () => {
    const rows = [
      { messageId: 'a', error: null },
      { messageId: 'longer', error: 'x' },
    ];
    expect(tableText(rows).split('\n')).toEqual(['messageId  error', 'a          -', 'longer     x']);
    expect(tableText([])).toBe('nothing is parked');
  });

  it('replaces control characters from a message, so that they cannot control the terminal', () => {
    expect(tableText([{ error: 'a\u001b[2Jb\nc' }])).toBe('error\na [2Jb c');
    expect(detailsText({ headers: { x: '\u001b[2J' }, body: '\u001b' })).not.toContain('\u001b');
  });
});
