import { breakText } from './break.ts';

const mutant = {
  name: 'late',
  description: '',
  promise: 'fires',
  bundle: 'main.js',
  original: 'now()',
  mistake: 'later()',
  caughtBy: /late/,
} as const;

describe('breakText', () => {
  it('plants the mistake in place of the original', () => {
    expect(breakText('at now() o’clock', mutant)).toBe('at later() o’clock');
  });

  it.each([
    ['0 times', 'at noon'],
    ['2 times', 'now() or now()'],
  ])('refuses code that occurs %s', (times, text) => {
    expect(() => breakText(text, mutant)).toThrow(`late: the code to break occurs ${times} in main.js`);
  });
});
