import { textTable } from './command-line.ts';

describe('textTable', () => {
  it('has columns as wide as their content, with figures aligned right', () => {
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

  it('has only a head if there are no rows', () => {
    expect(textTable(['what', 'lost'], [])).toEqual(['what  lost', '────  ────']);
  });
});
