import { exponentialRetryDelayMs, fullJitterDelayMs, sleep, waitUntil, withTimeout } from './index';

describe('withTimeout', () => {
  const tooLate = (): Error => new Error('too late');

  it('gives the outcome of work that ends in time', async () => {
    await expect(withTimeout(Promise.resolve(1), 1_000, tooLate)).resolves.toBe(1);
    await expect(withTimeout(Promise.reject(new Error('broken')), 1_000, tooLate)).rejects.toThrow('broken');
  });

  it('rejects with the given error when work takes longer, and ignores how that ends', async () => {
    const failsLater = sleep(20).then(() => Promise.reject(new Error('broken')));
    await expect(withTimeout(failsLater, 1, tooLate)).rejects.toThrow('too late');
    await expect(failsLater).rejects.toThrow('broken');
  });
});

describe('waitUntil', () => {
  it('is true as soon as the condition holds, and false when it never does', async () => {
    let asked = 0;
    const holdsLater = (): boolean => (asked += 1) > 2;
    await expect(waitUntil(holdsLater, { timeoutMs: 1_000, pollMs: 1 })).resolves.toBe(true);
    await expect(waitUntil(() => false, { timeoutMs: 5, pollMs: 1 })).resolves.toBe(false);
  });
});

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
