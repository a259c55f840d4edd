import { planFaults } from '#verification/scenarios/chaos/plan.ts';
import { calm, CALM, chaosFlags, describeRounds, one, oneAt, unite } from './rounds.ts';

describe('unite', () => {
  it('contains the rounds of both, and common ones only once', () => {
    expect(unite(calm(3), CALM)).toEqual(calm(3));
    const both = unite(oneAt('task', 'kill-starved-replica'), oneAt('settings', 'kill-starved-replica'));
    expect(both).toHaveLength(2);
    expect(describeRounds(unite(CALM, one('database-kill')))).toBe('calm, database-kill');
  });
});

describe('chaosFlags', () => {
  it('chooses a seed whose faults hit the named services', () => {
    const rounds = [
      ...calm(2),
      ...oneAt('task', 'kill-starved-replica'),
      ...oneAt('settings', 'rolling-restart'),
    ];
    const [, faults, , count, , seed] = chaosFlags(rounds);
    expect(faults).toBe('calm,calm,kill-starved-replica,rolling-restart');
    expect(count).toBe('4');
    const plan = planFaults(
      Number(seed),
      4,
      rounds.map(({ kind }) => kind),
    );
    expect(plan.map(({ kind, replica }) => `${kind} ${replica.service}`)).toEqual(
      expect.arrayContaining(['kill-starved-replica task', 'rolling-restart settings']),
    );
  });

  it('refuses rounds that no seed produces', () => {
    const kills = oneAt('task', 'kill-starved-replica');
    expect(() => chaosFlags([...kills, { kind: 'calm', service: 'nobody' as 'task' }])).toThrow('no seed');
  });
});
