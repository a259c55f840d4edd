import { costOf } from './cost.ts';
import { byPart } from './usage.ts';

describe('the cost of one piece of work', () => {
  const usage = (cores: number, walBytesPerSecond: number) => ({
    cores: byPart(() => cores),
    walBytesPerSecond,
    seconds: 10,
    result: undefined,
  });

  it('excludes the idle usage of the platform', () => {
    const cost = costOf(usage(0.3, 1_100), 'task', { idle: usage(0.1, 100), count: 2_000 });
    expect(cost.service).toBeCloseTo(1_000);
    expect(cost.postgresql).toBeCloseTo(1_000);
    expect(cost.walBytes).toBeCloseTo(5);
  });
});
