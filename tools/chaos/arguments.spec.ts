import { ArgumentsError } from '#platform/command-line.ts';
import { parseChaosArguments } from './arguments.ts';
import { CLUSTER_FAULT_KINDS, FAULT_KINDS } from './plan.ts';

describe('parseChaosArguments', () => {
  it('has every fault and the random seed unless told', () => {
    expect(parseChaosArguments([], 42)).toEqual({
      rounds: 17,
      seed: 42,
      faults: FAULT_KINDS,
      durationMs: 1_800_000,
      dist: 'dist',
    });
  });

  it('takes rounds, seed, faults and duration', () => {
    const flags = ['--rounds', '3', '--seed', '7', '--faults', 'half-open,broker-kill', '--duration', '90s'];
    expect(parseChaosArguments(flags, 1)).toMatchObject({
      rounds: 3,
      seed: 7,
      faults: ['half-open', 'broker-kill'],
      durationMs: 90_000,
    });
  });

  it('takes the release that is to be upgraded', () => {
    expect(parseChaosArguments(['--upgrade-from', 'f48af82'], 1)).toMatchObject({ upgradeFrom: 'f48af82' });
  });

  it('has the faults of three machines with --cluster', () => {
    expect(parseChaosArguments(['--cluster'], 1)).toMatchObject({
      cluster: true,
      faults: CLUSTER_FAULT_KINDS,
    });
  });

  it.each([
    [['--cluster', '--faults', 'half-open']],
    [['--cluster', '--upgrade-from', 'f48af82']],
    [['--faults', 'postmaster-kill']],
    [['--rounds', 'many']],
    [['--faults', 'earthquake']],
    [['--duration', '5']],
    [['--loud']],
    [['--seed', '-1']],
  ])('refuses %j', (flags) => {
    expect(() => parseChaosArguments(flags, 1)).toThrow(ArgumentsError);
  });
});
