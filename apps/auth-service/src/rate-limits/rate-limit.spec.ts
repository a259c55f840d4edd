import { ContentionError, DatabaseUnavailableError } from '@platform/database';
import { ManualClock } from '@platform/time';
import { giveBackIfRefused, RefusedBuckets, perMinute, TokenRateExceeded } from './rate-limit';

describe('perMinute', () => {
  it('spreads the requests over the minute, and admits a full minute’s requests at once', () => {
    expect(perMinute(60)).toEqual({ costSeconds: 1, toleranceSeconds: 59 });
    expect(perMinute(1)).toEqual({ costSeconds: 60, toleranceSeconds: 0 });
  });
});

describe('RefusedBuckets', () => {
  it('remembers a bucket until its wait is over', () => {
    const clock = new ManualClock('2026-01-01T00:00:00Z');
    const refused = new RefusedBuckets(clock);
    refused.remember('a', 2);
    expect(refused.waitSeconds('a')).toBe(2);
    expect(refused.waitSeconds('b')).toBeNull();
    clock.advance(1_500);
    expect(refused.waitSeconds('a')).toBe(0.5);
    clock.advance(500);
    expect(refused.waitSeconds('a')).toBeNull();
  });

  it('evicts the oldest bucket above its capacity', () => {
    const refused = new RefusedBuckets(new ManualClock('2026-01-01T00:00:00Z'), 2);
    for (const bucket of ['a', 'b', 'c']) refused.remember(bucket, 60);
    expect(['a', 'b', 'c'].map((bucket) => refused.waitSeconds(bucket))).toEqual([null, 60, 60]);
  });
});

describe('giveBackIfRefused', () => {
  it.each([
    ['returns it: a limit refused the issue', new TokenRateExceeded('application', 1, false), 1],
    ['returns it: contention prevented the issue', new ContentionError('kept colliding'), 1],
    ['keeps it used: the outcome is unknown', new DatabaseUnavailableError('gone'), 0],
  ])('returns a consumed proof only if nothing can have been issued; %s', async (_when, error, times) => {
    const giveBack = jest.fn(() => Promise.resolve());
    await expect(giveBackIfRefused(Promise.reject(error), giveBack)).rejects.toBe(error);
    expect(giveBack).toHaveBeenCalledTimes(times);
  });
});
