import fc from 'fast-check';
import { WatcherShares } from './watcher-shares';
import type { Holder } from './watcher-shares';

const holder = (caller: string, application = 'a'): Holder => ({ caller, application });
const counts = (shares: WatcherShares<Holder>): Record<string, number> => {
  const found: Record<string, number> = {};
  for (const { application, caller } of shares)
    found[`${application}/${caller}`] = (found[`${application}/${caller}`] ?? 0) + 1;
  return found;
};

describe('WatcherShares', () => {
  it('lets a lone caller have every place, and no more', () => {
    const shares = new WatcherShares<Holder>(3);
    const added = [1, 2, 3, 4].map(() => shares.add(holder('x')));
    const placed = { isPlaced: true, displaced: null };
    expect(added).toEqual([placed, placed, placed, { isPlaced: false, displaced: null }]);
  });

  it('gives a newcomer the oldest place of the caller with the most places', () => {
    const shares = new WatcherShares<Holder>(4);
    const hog = [1, 2, 3, 4].map(() => holder('hog'));
    for (const each of hog) shares.add(each);
    expect(shares.add(holder('x')).displaced).toBe(hog[0]);
    expect(shares.add(holder('x')).displaced).toBe(hog[1]);
    expect(shares.add(holder('x')).isPlaced).toBe(false);
    expect(shares.add(holder('hog')).isPlaced).toBe(false);
    expect(counts(shares)).toEqual({ 'a/hog': 2, 'a/x': 2 });
  });

  it('counts an application with many callers as one', () => {
    const shares = new WatcherShares<Holder>(6);
    for (const caller of ['1', '2', '3', '4', '5', '6']) shares.add(holder(caller, 'many'));
    for (let n = 0; n < 6; n += 1) shares.add(holder('x', 'other'));
    expect(counts(shares)['other/x']).toBe(3);
    expect(shares.size).toBe(6);
  });

  describe('with a caller that spreads over applications that no other caller uses', () => {
    const LIMIT = 320;
    const SHARE = LIMIT / 16;
    const people = (count: number) =>
      Array.from({ length: count }, (_, n) => holder(`person ${String(n)}`, 'portal'));
    const hog = (count: number) =>
      Array.from({ length: count }, (_, n) => holder('hog', `x${String(n % 4)}`));
    const placesOf = (shares: WatcherShares<Holder>, caller: string) =>
      [...shares].filter((each) => each.caller === caller).length;

    it('lets it take at most a sixteenth from others that have one place each', () => {
      const shares = new WatcherShares<Holder>(LIMIT);
      for (const each of [...people(LIMIT), ...hog(LIMIT)]) shares.add(each);
      expect(placesOf(shares, 'hog')).toBe(SHARE);
      expect(shares.size).toBe(LIMIT);
    });

    it('takes its places for others until it has a sixteenth', () => {
      const shares = new WatcherShares<Holder>(LIMIT);
      for (const each of hog(LIMIT)) shares.add(each);
      const refused = people(LIMIT).filter((each) => !shares.add(each).isPlaced);
      expect(placesOf(shares, 'hog')).toBe(SHARE);
      expect(refused).toHaveLength(SHARE);
    });
  });

  it('has room again after a watcher is deleted', () => {
    const shares = new WatcherShares<Holder>(1);
    const first = holder('x');
    shares.add(first);
    shares.delete(first);
    shares.delete(first);
    expect(shares.size).toBe(0);
    expect(shares.add(holder('y'))).toEqual({ isPlaced: true, displaced: null });
  });

  it('never exceeds its limit, and refuses no caller with two places fewer than another of its application', () => {
    const arrival = fc.record({
      caller: fc.constantFrom('1', '2', '3'),
      application: fc.constantFrom('a', 'b'),
    });
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 60 }), fc.integer({ min: 1, max: 8 }), (arrivals, limit) => {
        const shares = new WatcherShares<Holder>(limit);
        for (const each of arrivals) {
          const before = counts(shares);
          const own = before[`${each.application}/${each.caller}`] ?? 0;
          const rivals = Object.entries(before).filter(([name]) => name.startsWith(`${each.application}/`));
          const isRefused = !shares.add({ ...each }).isPlaced;
          expect(shares.size).toBeLessThanOrEqual(limit);
          if (isRefused) for (const [, count] of rivals) expect(count).toBeLessThanOrEqual(own + 1);
        }
      }),
    );
  });
});
