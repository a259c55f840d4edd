import { ArgumentsError } from '#platform/command-line.ts';
import { numbersOf, parseFuzzArguments } from './run';

describe('parseFuzzArguments', () => {
  it('defaults to all services and the random seed', () => {
    const args = parseFuzzArguments([], 42);
    expect(args).toMatchObject({ seed: 42, requests: 10_000, only: null, build: true });
    expect(args.services).toEqual(['auth', 'settings', 'task']);
  });

  it('repeats single requests', () => {
    expect(parseFuzzArguments(['--seed', '7', '--only', '3,9', '--service', 'task'], 42)).toMatchObject({
      seed: 7,
      only: [3, 9],
      services: ['task'],
    });
  });

  it('repeats requests with their neighbours', () => {
    const args = parseFuzzArguments(['--seed', '7', '--only', '3,9', '--neighbours', '4'], 42);
    expect(numbersOf(args)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    expect(numbersOf({ ...args, neighbours: 0 })).toEqual([3, 9]);
  });

  it.each([[['--requests', 'many']], [['--service', 'mail']], [['--nonsense']]])('refuses %j', (args) => {
    expect(() => parseFuzzArguments(args, 1)).toThrow(ArgumentsError);
  });
});
