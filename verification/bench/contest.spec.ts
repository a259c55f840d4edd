import { compareWithBest, type Contest, formatFigure, judge, runContest } from './contest.ts';

function contestant(name: string, figures: number[], journal: string[]) {
  return {
    name,
    does: `what ${name} does`,
    measure: () => {
      journal.push(name);
      return Promise.resolve(figures.shift() ?? 0);
    },
  };
}

describe('a contest', () => {
  it('ignores the warm-up, alternates the order, and judges the median of the ratios', async () => {
    const journal: string[] = [];
    const contest: Contest = {
      unit: 'requests/s',
      contestants: [
        contestant('ours', [1, 80, 90, 100], journal),
        contestant('bare', [1, 100, 100, 100], journal),
      ],
      comparisons: [{ title: 'reads', of: 'ours', against: 'bare', goal: { atLeast: 0.85 } }],
      conditions: [],
      close: () => Promise.resolve(),
    };

    const result = await runContest(contest, { rounds: 3, seconds: 1 }, () => undefined);

    expect(journal).toEqual(['bare', 'ours', 'ours', 'bare', 'bare', 'ours', 'ours', 'bare']);
    expect(result.contestants[0]!.figures).toEqual([80, 90, 100]);
    expect(result.comparisons[0]).toMatchObject({ ratio: { median: 0.9, min: 0.8, max: 1 }, met: true });
  });

  it('can compare with a constant, and have an upper bound as its goal', () => {
    const comparison = { title: '', of: 'effect', against: 2_000, goal: { atMost: 1 } } as const;
    expect(judge(comparison, new Map([['effect', [500, 3_000, 1_000]]])).met).toBe(true);
    expect(judge(comparison, new Map([['effect', [2_500, 3_000, 1_000]]])).met).toBe(false);
  });

  it('can compare the gain by a second process on both sides', () => {
    const comparison = {
      title: '',
      of: ['two', 'one'],
      against: ['two bare', 'bare'],
      goal: { atLeast: 0.9 },
    } as const;
    const figures = new Map(Object.entries({ one: [100], two: [150], bare: [200], 'two bare': [400] }));
    expect(judge(comparison, figures)).toMatchObject({ ratio: { median: 0.75 }, met: false });
  });

  it('refuses a comparison with a contestant without figures', () => {
    const comparison = { title: '', of: 'a', against: 'b', goal: { atLeast: 1 } } as const;
    expect(() => judge(comparison, new Map([['a', [1]]]))).toThrow(RangeError);
  });

  it.each([
    [12_345.6, '12,346'],
    [0.8561, '0.856'],
    [99.99, '100'],
  ])('prints %d as %s', (value, text) => {
    expect(formatFigure(value)).toBe(text);
  });
});

describe('compareWithBest', () => {
  const spread = (median: number) => ({ median, min: median, max: median });
  const resultOf = (bare: number) => [
    {
      id: 'settings-read',
      title: 'reads',
      result: {
        unit: 'requests/s',
        conditions: [],
        contestants: [
          { name: 'ours', does: '', figures: [], spread: spread(1), processors: null },
          { name: 'bare', does: '', figures: [], spread: spread(bare), processors: null },
        ],
        comparisons: [
          {
            title: 'bare',
            of: 'ours',
            against: 'bare',
            goal: { atLeast: 1 },
            ratio: spread(1),
            met: true,
          },
        ],
      },
    },
  ];

  it('names a bare side that is slower than half of its best rate', () => {
    const best = { 'settings-read, bare': 31_000 };
    expect(compareWithBest(resultOf(8_700), best)).toEqual({
      bestSeen: best,
      slowSides: ['settings-read, bare: 8,700 requests/s, 31,000 at best'],
    });
  });

  it('raises the best rate, and names nothing, if the machine is fast', () => {
    const best = { 'settings-read, bare': 31_000 };
    expect(compareWithBest(resultOf(16_000), best)).toEqual({ bestSeen: best, slowSides: [] });
    expect(compareWithBest(resultOf(32_000), best).bestSeen).toEqual({ 'settings-read, bare': 32_000 });
  });
});
