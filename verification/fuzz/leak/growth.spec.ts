import { judgeSeries, slopeOf } from './growth';

const series = (values: number[]) => ({
  name: 'heap',
  unit: 'MB' as const,
  values,
  bound: { share: 0.05, slack: 2 },
});

describe('judgeSeries', () => {
  it('ignores growth while a process warms up', () => {
    expect(judgeSeries(series([40, 80, 95, 100, 100, 101, 100, 101])).levelsOff).toBe(true);
  });

  it('notices steady growth in the second half', () => {
    const verdict = judgeSeries(series([40, 50, 60, 70, 80, 90, 100, 110]));
    expect(verdict).toMatchObject({ growth: 30, levelsOff: false });
  });

  it('ignores a single outlier at the end', () => {
    expect(judgeSeries(series([80, 90, 95, 100, 100, 100, 100, 100, 100, 100, 100, 160])).levelsOff).toBe(
      true,
    );
  });

  it('refuses fewer than four values', () => {
    expect(() => judgeSeries(series([1, 2, 3]))).toThrow(RangeError);
  });
});

describe('slopeOf', () => {
  it('is the rise of a line per step', () => {
    expect(slopeOf([1, 3, 5, 7])).toBe(2);
  });

  it('is zero for constant values', () => {
    expect(slopeOf([4, 4])).toBe(0);
  });
});
