import { decideRetry, delaysOf, OUTAGE_DELAY_MS } from './retry-decision';

const POLICY = [5_000, 30_000, 60_000, 180_000, 300_000];

describe('decideRetry', () => {
  it.each([true, false])('takes the waits of the policy in order, then parks (outage: %p)', (isOutage) => {
    const decisions = [0, 1, 2, 3, 4, 5].map((attempts) =>
      decideRetry({ attempts, retryDelaysMs: POLICY, isOutage }),
    );
    expect(decisions).toEqual([
      ...POLICY.map((delayMs, index) => ({ action: 'retry', delayMs, attempts: index + 1 })),
      { action: 'park' },
    ]);
  });

  it('parks at once without a policy', () => {
    expect(decideRetry({ attempts: 0, retryDelaysMs: [], isOutage: false })).toEqual({ action: 'park' });
  });

  it('without a policy never gives a message up for an outage', () => {
    const decision = decideRetry({ attempts: 0, retryDelaysMs: [], isOutage: true });
    expect(decision).toEqual({ action: 'postpone', delayMs: OUTAGE_DELAY_MS });
  });

  it('parks a message that claims more attempts than the policy has', () => {
    expect(decideRetry({ attempts: 99, retryDelaysMs: POLICY, isOutage: true })).toEqual({ action: 'park' });
  });
});

describe('delaysOf', () => {
  it('names each wait once, and always one for outages', () => {
    expect(delaysOf([5_000, 1_000, 5_000])).toEqual([1_000, 5_000]);
    expect(delaysOf([])).toEqual([OUTAGE_DELAY_MS]);
  });
});
