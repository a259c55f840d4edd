import fc from 'fast-check';
import { isDeeperThan } from './json';

/** A recursive reference implementation. */
function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe('isDeeperThan', () => {
  it('agrees with the parsed value', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.nat(6), (text, limit) => {
        expect(isDeeperThan(text, limit)).toBe(depthOf(JSON.parse(text)) > limit);
      }),
    );
  });

  it('does not count brackets in strings', () => {
    expect(isDeeperThan('["[[[[\\"[[[[", "\\\\"]', 1)).toBe(false);
    expect(isDeeperThan('["\\\\", [[]]]', 2)).toBe(true);
  });

  it('handles a million levels and truncated text', () => {
    expect(isDeeperThan('['.repeat(1_000_000), 1_024)).toBe(true);
    expect(isDeeperThan('"\\', 0)).toBe(false);
  });
});
