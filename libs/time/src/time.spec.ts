import { getEventListeners } from 'node:events';
import {
  exponentialRetryDelayMs,
  fixedClock,
  fullJitterDelayMs,
  ManualClock,
  sleep,
  waitUntil,
  withTimeout,
} from './index';

describe('ManualClock', () => {
  it('changes only when advanced, and advances both of its times', () => {
    const clock = new ManualClock('2026-01-05T10:00:00Z');
    const startedMs = clock.monotonicMs();
    expect(clock.now()).toEqual(new Date('2026-01-05T10:00:00Z'));
    clock.advance(1_500);
    clock.advance(500);
    expect(clock.now()).toEqual(new Date('2026-01-05T10:00:02Z'));
    expect(clock.monotonicMs() - startedMs).toBe(2_000);
    expect(fixedClock(clock.now()).now()).toEqual(clock.now());
  });
});

describe('withTimeout', () => {
  const tooLate = (): Error => new Error('too late');

  it('settles as the work does if it ends in time', async () => {
    await expect(withTimeout(Promise.resolve(1), 1_000, tooLate)).resolves.toBe(1);
    await expect(withTimeout(Promise.reject(new Error('broken')), 1_000, tooLate)).rejects.toThrow('broken');
  });

  it('rejects with the given error if the work takes longer, and ignores its late result', async () => {
    const failsLater = sleep(20).then(() => Promise.reject(new Error('broken')));
    await expect(withTimeout(failsLater, 1, tooLate)).rejects.toThrow('too late');
    await expect(failsLater).rejects.toThrow('broken');
  });

  it('names the limit in its default error', async () => {
    await expect(withTimeout(sleep(20), 1)).rejects.toThrow('no answer within 1 ms');
  });

  it('leaves no timer behind', async () => {
    jest.useFakeTimers();
    try {
      await withTimeout(Promise.resolve(1), 1_000);
      await withTimeout(Promise.reject(new Error('broken')), 1_000).catch(String);
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('waitUntil', () => {
  it('is true as soon as the condition holds, and false when it never does', async () => {
    let checks = 0;
    const holdsLater = (): boolean => (checks += 1) > 2;
    await expect(waitUntil(holdsLater, { timeoutMs: 1_000, pollMs: 1 })).resolves.toBe(true);
    await expect(waitUntil(() => false, { timeoutMs: 5, pollMs: 1 })).resolves.toBe(false);
  });
});

describe('exponentialRetryDelayMs', () => {
  it('grows from 10 ms to 100 s in five steps', () => {
    expect([1, 2, 3, 4, 5].map(exponentialRetryDelayMs)).toEqual([10, 100, 1_000, 10_000, 100_000]);
  });

  it.each([0, 6, 1.5, -1, NaN])('refuses attempt %p', (attempt) => {
    expect(() => exponentialRetryDelayMs(attempt)).toThrow(RangeError);
  });
});

describe('fullJitterDelayMs', () => {
  it('ranges from zero to the base doubled per attempt, capped at the maximum', () => {
    const almostOne = (): number => 0.999999;
    const waits = [1, 2, 3, 10].map((attempt) =>
      fullJitterDelayMs(attempt, { baseMs: 10, maxMs: 50, random: almostOne }),
    );
    expect(waits).toEqual([9, 19, 39, 49]);
    expect(fullJitterDelayMs(3, { baseMs: 10, maxMs: 50, random: () => 0 })).toBe(0);
  });

  it.each([0, 1.5])('refuses attempt %p', (attempt) => {
    expect(() => fullJitterDelayMs(attempt, { baseMs: 10, maxMs: 50 })).toThrow(RangeError);
  });
});

describe('sleep', () => {
  it('rejects at once with the reason when its signal aborts', async () => {
    const abort = new AbortController();
    const sleeping = sleep(60_000, abort.signal);
    abort.abort(new Error('stopping'));
    await expect(sleeping).rejects.toThrow('stopping');
    await expect(sleep(60_000, abort.signal)).rejects.toThrow('stopping');
  });

  it('leaves no listener and no timer behind, however it ends', async () => {
    jest.useFakeTimers();
    try {
      const abort = new AbortController();
      const done = sleep(10, abort.signal);
      jest.advanceTimersByTime(10);
      await done;
      expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
      const aborted = sleep(10, abort.signal).catch(String);
      abort.abort(new Error('stopping'));
      await aborted;
      expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });
});
