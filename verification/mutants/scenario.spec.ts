import { planFaults } from '#verification/scenarios/chaos/plan.ts';
import { calm, CALM, chaosFlags, describeScenario, one, oneAt, unite } from './scenario.ts';

describe('unite', () => {
  it('has the rounds of both, and none twice that one run of them shows', () => {
    expect(unite(calm(3), CALM)).toEqual(calm(3));
    const both = unite(oneAt('task', 'kill-starved-replica'), oneAt('settings', 'kill-starved-replica'));
    expect(both).toHaveLength(2);
    expect(describeScenario(unite(CALM, one('database-kill')))).toBe('calm, database-kill');
  });
});

describe('chaosFlags', () => {
  it('has a seed whose faults hit the services that are named', () => {
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

  it('refuses what no seed has', () => {
    const kills = oneAt('task', 'kill-starved-replica');
    expect(() => chaosFlags([...kills, { kind: 'calm', service: 'nobody' as 'task' }])).toThrow('no seed');
  });
});
