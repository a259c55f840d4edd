import { MAX_RETRIES, RetryBudget, isRetryableStatus, parseRetryAfterMs, retryDelayMs } from './retry-policy';

describe('retryDelayMs', () => {
  it('doubles from 200 ms, one half fixed and the other half random', () => {
    const retries = Array.from({ length: MAX_RETRIES }, (_, index) => index + 1);
    expect(retries.map((retry) => retryDelayMs(retry, 0, null))).toEqual([100, 200, 400, 800, 1_600]);
    expect(retries.map((retry) => retryDelayMs(retry, 0.5, null))).toEqual([150, 300, 600, 1_200, 2_400]);
    expect(retries.map((retry) => retryDelayMs(retry, 1, null))).toEqual([200, 400, 800, 1_600, 3_200]);
  });

  it('never exceeds 5 s', () => {
    expect(retryDelayMs(6, 1, null)).toBe(5_000);
    expect(retryDelayMs(60, 0, null)).toBe(2_500);
  });

  it('waits as long as Retry-After requests, up to 5 s, but never less than the backoff', () => {
    expect(retryDelayMs(1, 0, 3_000)).toBe(3_000);
    expect(retryDelayMs(1, 0, 60_000)).toBe(5_000);
    expect(retryDelayMs(5, 0, 1_000)).toBe(1_600);
  });
});

describe('isRetryableStatus', () => {
  it.each([408, 429, 500, 502, 503, 504, 507, 599])('%d: yes', (status) => {
    expect(isRetryableStatus(status)).toBe(true);
  });
  it.each([200, 302, 400, 401, 403, 404, 409, 412, 422, 501, 505])('%d: no', (status) => {
    expect(isRetryableStatus(status)).toBe(false);
  });
});

describe('parseRetryAfterMs', () => {
  const nowMs = Date.UTC(2026, 0, 5, 10, 0, 0);
  it.each([
    ['3', 3_000],
    [' 0 ', 0],
    ['Mon, 05 Jan 2026 10:00:02 GMT', 2_000],
    ['Mon, 05 Jan 2026 09:00:00 GMT', 0],
    ['soon', null],
    ['', null],
    [null, null],
  ])('%j is %j ms', (header, expected) => {
    expect(parseRetryAfterMs(header, nowMs)).toBe(expected);
  });
});

describe('RetryBudget', () => {
  it('loses one per retry and regains by successes, up to its capacity', () => {
    const budget = new RetryBudget({ capacity: 2, refill: 0.5 });
    expect([budget.take(), budget.take(), budget.take()]).toEqual([true, true, false]);
    budget.recordSuccess();
    expect(budget.take()).toBe(false);
    budget.recordSuccess();
    expect(budget.take()).toBe(true);
    for (let success = 0; success < 100; success += 1) budget.recordSuccess();
    expect([budget.take(), budget.take(), budget.take()]).toEqual([true, true, false]);
  });
});
