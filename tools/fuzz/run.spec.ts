import { ArgumentsError } from '#platform/command-line.ts';
import { parseFuzzArguments } from './run';

describe('parseFuzzArguments', () => {
  it('fuzzes all services with the random seed unless told otherwise', () => {
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

  it.each([[['--requests', 'many']], [['--service', 'mail']], [['--nonsense']]])('refuses %j', (args) => {
    expect(() => parseFuzzArguments(args, 1)).toThrow(ArgumentsError);
  });
});
