import { DatabaseUnavailableError, withConnectionRetry } from './index';

const refused = (): Error => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

/** Returns work that fails `times` times and then returns 'done'. */
function flaky(
  times: number,
  error: () => Error = refused,
): { work: () => Promise<string>; calls: () => number } {
  let calls = 0;
  return {
    work: () => ((calls += 1) <= times ? Promise.reject(error()) : Promise.resolve('done')),
    calls: () => calls,
  };
}

describe('withConnectionRetry', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('tries five more times, 10 ms to 100 s apart', async () => {
    const { work, calls } = flaky(Infinity);
    const outcome = expect(withConnectionRetry(work)).rejects.toThrow(DatabaseUnavailableError);
    const seen: number[] = [];
    for (const waitMs of [0, 10, 100, 1_000, 10_000, 100_000]) {
      await jest.advanceTimersByTimeAsync(waitMs);
      seen.push(calls());
    }
    await outcome;
    expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('returns the result of the first attempt that succeeds', async () => {
    const result = withConnectionRetry(flaky(2).work);
    await jest.advanceTimersByTimeAsync(110);
    expect(await result).toBe('done');
  });

  it('cuts the last wait short at the deadline', async () => {
    const { work, calls } = flaky(Infinity);
    const outcome = expect(withConnectionRetry(work, { deadlineMs: 10_000 })).rejects.toThrow(
      DatabaseUnavailableError,
    );
    await jest.advanceTimersByTimeAsync(10_000);
    await outcome;
    expect(calls()).toBe(5);
  });

  it('rethrows other errors at once', async () => {
    const { work, calls } = flaky(1, () => new Error('no such table'));
    await expect(withConnectionRetry(work)).rejects.toThrow('no such table');
    expect(calls()).toBe(1);
  });

  it('stops waiting when the signal aborts', async () => {
    const abort = new AbortController();
    const outcome = expect(
      withConnectionRetry(flaky(Infinity).work, { signal: abort.signal }),
    ).rejects.toThrow('stopping');
    await jest.advanceTimersByTimeAsync(50);
    abort.abort(new Error('stopping'));
    await outcome;
  });
});
