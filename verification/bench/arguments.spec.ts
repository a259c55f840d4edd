import { ArgumentsError } from '#platform/command-line.ts';
import { parseBenchArguments } from './arguments.ts';

const KNOWN = ['settings-read', 'token-trust'];

describe('arguments of npm run bench', () => {
  it('default to all benchmarks, with results written', () => {
    expect(parseBenchArguments([], KNOWN)).toEqual({
      list: false,
      ids: [],
      rounds: 7,
      seconds: 3,
      profile: null,
      write: true,
    });
  });

  it('name benchmarks and the length of the run; results of a part are not written', () => {
    const args = parseBenchArguments(['token-trust', '--rounds', '3', '--seconds', '0.5'], KNOWN);
    expect(args).toMatchObject({ ids: ['token-trust'], rounds: 3, seconds: 0.5, write: false });
  });

  it('ask for a quick run, whose results are not written', () => {
    expect(parseBenchArguments(['--quick'], KNOWN)).toMatchObject({ rounds: 1, seconds: 0.5, write: false });
  });

  it.each([[['settings-raed']], [['--rounds', '0']], [['--seconds', 'long']], [['--fast']]])(
    'are refused when they are %j',
    (args) => {
      expect(() => parseBenchArguments(args, KNOWN)).toThrow(ArgumentsError);
    },
  );
});
