import { exponentialRetryDelayMs, fullJitterDelayMs, sleep } from './index';

describe('exponentialRetryDelayMs', () => {
  it('goes from 10 ms to 100 s in five steps', () => {
    expect([1, 2, 3, 4, 5].map(exponentialRetryDelayMs)).toEqual([10, 100, 1_000, 10_000, 100_000]);
  });

  it.each([0, 6, 1.5, -1, NaN])('refuses attempt %p', (attempt) => {
    expect(() => exponentialRetryDelayMs(attempt)).toThrow(RangeError);
  });
});

describe('fullJitterDelayMs', () => {
  it('draws from zero up to the doubled base, bounded by the maximum', () => {
    const almostOne = (): number => 0.999999;
    const waits = [1, 2, 3, 10].map((attempt) =>
      fullJitterDelayMs(attempt, { baseMs: 10, maxMs: 50, random: almostOne }),
    );
    expect(waits).toEqual([9, 19, 39, 49]);
    expect(fullJitterDelayMs(3, { baseMs: 10, maxMs: 50, random: () => 0 })).toBe(0);
  });

  it('refuses attempt 0', () => {
    expect(() => fullJitterDelayMs(0, { baseMs: 10, maxMs: 50 })).toThrow(RangeError);
  });
});

describe('sleep', () => {
  it('ends at once with the reason when its signal aborts', async () => {
    const abort = new AbortController();
    const sleeping = sleep(60_000, abort.signal);
    abort.abort(new Error('stopping'));
    await expect(sleeping).rejects.toThrow('stopping');
    await expect(sleep(60_000, abort.signal)).rejects.toThrow('stopping');
  });
});
