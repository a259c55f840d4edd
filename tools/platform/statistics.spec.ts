import { median, percentile, spreadOf } from './statistics.ts';

describe('statistics of rounds', () => {
  it('take the middle, whatever the order', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(() => median([])).toThrow(RangeError);
  });

  it('take percentiles by nearest rank', () => {
    const values = Array.from({ length: 100 }, (_value, index) => index + 1);
    expect(percentile(values, 0.99)).toBe(99);
    expect(percentile(values, 1)).toBe(100);
    expect(percentile([7], 0.5)).toBe(7);
    expect(() => percentile([], 0.5)).toThrow(RangeError);
  });

  it('keep the extremes beside the median', () => {
    expect(spreadOf([5, 9, 1])).toEqual({ median: 5, min: 1, max: 9 });
  });
});
