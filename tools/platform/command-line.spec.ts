import { textTable } from './command-line.ts';

describe('textTable', () => {
  it('has columns as wide as they must be, those of figures aligned right', () => {
    const rows = [
      ['sign-in', '9', '1.5 ms', '200 × 9'],
      ['list', '1200', '12.0 ms', '200 × 1199  429 × 1'],
    ];
    expect(textTable(['kind', 'sent', 'slowest', 'responses'], rows)).toEqual([
      'kind     sent  slowest  responses',
      '───────  ────  ───────  ───────────────────',
      'sign-in     9   1.5 ms  200 × 9',
      'list     1200  12.0 ms  200 × 1199  429 × 1',
    ]);
  });

  it('has a head alone when there is nothing to show', () => {
    expect(textTable(['what', 'lost'], [])).toEqual(['what  lost', '────  ────']);
  });
});
