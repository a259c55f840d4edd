import { jitterSecondsOf } from './trigger.entity';

describe('jitter', () => {
  it('spreads ten thousand facilities, neighbours or not, over its span', () => {
    for (const step of [1, 10, 64, 900]) {
      const perSecond = new Map<number, number>();
      for (let facility = 1; facility <= 10_000; facility += 1) {
        const seconds = jitterSecondsOf(facility * step, 900);
        perSecond.set(seconds, (perSecond.get(seconds) ?? 0) + 1);
      }
      expect(Math.max(...perSecond.values())).toBeLessThan(60);
      expect([...perSecond.keys()].every((seconds) => seconds >= 0 && seconds < 900)).toBe(true);
    }
  });

  it('is 0 for a span of 0', () => {
    expect(jitterSecondsOf(501, 0)).toBe(0);
  });
});
