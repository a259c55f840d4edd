import { ArgumentsError } from '#platform/command-line.ts';
import {
  CLUSTER_FAULT_KINDS,
  describeFault,
  FAULT_KINDS,
  parseChaosArguments,
  planFaults,
  planUpgrade,
  roundFlags,
} from './plan.ts';

describe('planFaults', () => {
  it('plans the same faults for the same seed and others for another', () => {
    expect(planFaults(7, 30)).toEqual(planFaults(7, 30));
    expect(planFaults(8, 30)).not.toEqual(planFaults(7, 30));
  });

  it('plans every kind once before any repeats', () => {
    const kinds = planFaults(1, 2 * FAULT_KINDS.length).map(({ kind }) => kind);
    expect(new Set(kinds.slice(0, FAULT_KINDS.length)).size).toBe(FAULT_KINDS.length);
    expect(new Set(kinds.slice(FAULT_KINDS.length)).size).toBe(FAULT_KINDS.length);
  });

  it('plans each kind once for each service within three rounds', () => {
    const services = planFaults(5, 3, ['rolling-restart']).map(({ replica }) => replica.service);
    expect(services.toSorted()).toEqual(['auth', 'settings', 'task']);
  });

  it('pairs each replica only with servers that it connects to', () => {
    for (const { replica, dependency } of planFaults(3, 300)) {
      if (replica.service !== 'task') expect(dependency).not.toBe('broker');
      if (replica.service === 'auth') expect(dependency).toBe('database');
    }
  });

  it('plans no upgrade unless asked to', () => {
    expect(FAULT_KINDS).not.toContain('upgrade');
    const steps = planUpgrade(7).map(describeFault);
    const of = (kind: string): string[] =>
      ['auth', 'settings', 'task'].map((name) => `${kind} of ${name}-service`);
    expect(steps.slice(0, 3).toSorted()).toEqual(of('upgrade'));
    expect(steps.slice(3).toSorted()).toEqual(of('roll-back'));
  });

  it('plans harmless kinds only if they are asked for', () => {
    expect(FAULT_KINDS).not.toContain('calm');
    expect(CLUSTER_FAULT_KINDS).not.toContain('expired-rows');
    const flags = ['--faults', 'calm,expired-rows'];
    expect(parseChaosArguments(flags, 1)).toMatchObject({ faults: ['calm', 'expired-rows'] });
    expect(parseChaosArguments(['--cluster', ...flags], 1)).toMatchObject({
      faults: ['calm', 'expired-rows'],
    });
  });

  it('plans only the kinds that were asked for', () => {
    expect(planFaults(1, 4, ['half-open']).map(({ kind }) => kind)).toEqual(Array(4).fill('half-open'));
  });
});

describe('describeFault', () => {
  const fault = {
    round: 1,
    kind: 'black-hole',
    replica: { service: 'task', letter: 'b' },
    dependency: 'broker',
    everywhere: false,
    lastsMs: 4_200,
  } as const;

  it('says what, where and for how long', () => {
    expect(describeFault(fault)).toBe('black-hole task-b ↔ broker 4.2 s');
    expect(describeFault({ ...fault, everywhere: true })).toBe('black-hole everybody ↔ broker 4.2 s');
    expect(describeFault({ ...fault, kind: 'rolling-restart', lastsMs: 0 })).toBe(
      'rolling-restart of task-service',
    );
  });
});

describe('parseChaosArguments', () => {
  it('defaults to every fault and the random seed', () => {
    expect(parseChaosArguments([], 42)).toEqual({
      rounds: 17,
      seed: 42,
      faults: FAULT_KINDS,
      dist: 'dist',
    });
  });

  it('takes rounds, seed and faults', () => {
    const flags = ['--rounds', '3', '--seed', '7', '--faults', 'half-open,broker-kill'];
    expect(parseChaosArguments(flags, 1)).toMatchObject({
      rounds: 3,
      seed: 7,
      faults: ['half-open', 'broker-kill'],
    });
  });

  it('takes the release to upgrade from', () => {
    expect(parseChaosArguments(['--upgrade-from', 'f48af82'], 1)).toMatchObject({ upgradeFrom: 'f48af82' });
  });

  it('defaults to the faults of three machines with --cluster', () => {
    expect(parseChaosArguments(['--cluster'], 1)).toMatchObject({
      cluster: true,
      faults: CLUSTER_FAULT_KINDS,
    });
  });

  it('accepts a pooler with --cluster', () => {
    expect(parseChaosArguments(['--cluster', '--pooler'], 1)).toMatchObject({ pooler: true });
  });

  it.each([
    [['--pooler']],
    [['--cluster', '--faults', 'half-open']],
    [['--cluster', '--upgrade-from', 'f48af82']],
    [['--faults', 'postmaster-kill']],
    [['--rounds', 'many']],
    [['--faults', 'earthquake']],
    [['--loud']],
    [['--seed', '-1']],
  ])('refuses %j', (flags) => {
    expect(() => parseChaosArguments(flags, 1)).toThrow(ArgumentsError);
  });
});

describe('roundFlags', () => {
  const parse = (args: string[]): ReturnType<typeof parseChaosArguments> => parseChaosArguments(args, 1);

  it('name the kinds only where they were chosen', () => {
    expect(roundFlags(parse(['--rounds', '3']), FAULT_KINDS)).toBe('--rounds 3');
    const chosen = parse(['--rounds', '3', '--faults', 'kill-replica,calm']);
    expect(roundFlags(chosen, FAULT_KINDS)).toBe('--rounds 3 --faults kill-replica,calm');
  });
});
