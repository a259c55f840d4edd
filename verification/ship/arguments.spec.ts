import { parseShipArguments } from './steps.ts';

describe('parseShipArguments', () => {
  it('defaults to podman, then Docker, and to all steps', () => {
    expect(parseShipArguments([])).toEqual({ engines: ['podman', 'docker'], base: null, isShort: false });
  });

  it('takes an engine and a base image', () => {
    const args = ['--engine', 'docker', '--base', 'registry.example/node:24', '--short'];
    expect(parseShipArguments(args)).toEqual({
      engines: ['docker'],
      base: 'registry.example/node:24',
      isShort: true,
    });
  });

  it.each([[['--engine', 'lxc']], [['--quick']], [['now']]])('refuses %j', (args) => {
    expect(() => parseShipArguments(args)).toThrow(/npm run ship/);
  });
});
