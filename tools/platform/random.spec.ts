import fc from 'fast-check';
import { Random } from './random.ts';

const draws = (random: Random): number[] => Array.from({ length: 5 }, () => random.integer(0, 1_000_000));

describe('Random', () => {
  it('draws the same sequence for the same seed and number', () => {
    expect(draws(Random.ofStream(7, 123))).toEqual(draws(Random.ofStream(7, 123)));
  });

  it('draws other sequences for neighbouring seeds and numbers', () => {
    const sequences = [Random.ofStream(7, 123), Random.ofStream(7, 124), Random.ofStream(8, 123)].map(
      (random) => draws(random).join(),
    );
    expect(new Set(sequences).size).toBe(3);
  });

  it('stays within its bounds and reaches both', () => {
    const random = Random.ofStream(1, 1);
    expect(new Set(Array.from({ length: 200 }, () => random.integer(2, 4)))).toEqual(new Set([2, 3, 4]));
  });

  it('draws all numbers and all values of an arbitrary equally often', () => {
    const picked = Array.from({ length: 6_000 }, (_none, stream) => {
      const random = Random.ofStream(11, stream);
      return `${random.pick([1, 2, 3])} ${random.draw(fc.constantFrom('a', 'b'))}`;
    });
    const counts = ['1 a', '1 b', '2 a', '2 b', '3 a', '3 b'].map(
      (pair) => picked.filter((one) => one === pair).length,
    );
    expect(Math.min(...counts)).toBeGreaterThan(850);
    expect(Math.max(...counts)).toBeLessThan(1_150);
  });
});
