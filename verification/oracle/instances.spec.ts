import { compareInstances } from './instances.ts';

const DUE = [100, 200, 300, 400];
const BOUNDS = {
  requestedAtMs: 90,
  activeSinceMs: 110,
  generatedUntilMs: 310,
  latestMs: 350,
  toleranceMs: 5,
};

describe('compareInstances', () => {
  it('accepts instances due between request and acknowledgement, or between the two horizons', () => {
    for (const found of [[200, 300], DUE.slice(0, 3)])
      expect(compareInstances(DUE, found, BOUNDS)).toEqual({ missing: [], wrong: [] });
  });

  it('finds a missing instance, a late one, one before the schedule and one beyond the horizon', () => {
    expect(compareInstances(DUE, [200], BOUNDS).missing).toEqual([300]);
    expect(compareInstances(DUE, [200, 301], BOUNDS)).toEqual({ missing: [300], wrong: [301] });
    expect(compareInstances([50, ...DUE], [50, 200, 300], BOUNDS).wrong).toEqual([50]);
    expect(compareInstances(DUE, [200, 300, 400], BOUNDS).wrong).toEqual([400]);
  });

  it('requires no instance of a paused schedule', () => {
    expect(compareInstances(DUE, [], { ...BOUNDS, activeSinceMs: null }).missing).toEqual([]);
  });
});
