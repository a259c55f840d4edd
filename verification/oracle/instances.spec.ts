import { compareInstances } from './instances.ts';

const DUE = [100, 200, 300, 400];
const LIFE = { askedForAtMs: 90, activeSinceMs: 110, generatedUntilMs: 310, latestMs: 350, toleranceMs: 5 };

describe('compareInstances', () => {
  it('lets those exist that fall between request and acknowledgement, or between the two horizons', () => {
    for (const found of [[200, 300], DUE.slice(0, 3)])
      expect(compareInstances(DUE, found, LIFE)).toEqual({ missing: [], wrong: [] });
  });

  it('finds a missing one, one that is late, one before the schedule, one too far ahead', () => {
    expect(compareInstances(DUE, [200], LIFE).missing).toEqual([300]);
    expect(compareInstances(DUE, [200, 301], LIFE)).toEqual({ missing: [300], wrong: [301] });
    expect(compareInstances([50, ...DUE], [50, 200, 300], LIFE).wrong).toEqual([50]);
    expect(compareInstances(DUE, [200, 300, 400], LIFE).wrong).toEqual([400]);
  });

  it('asks for none of a schedule that is paused', () => {
    expect(compareInstances(DUE, [], { ...LIFE, activeSinceMs: null }).missing).toEqual([]);
  });
});
