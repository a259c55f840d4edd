import { ManualClock } from '@platform/time';
import { CircuitBreaker } from './customers.client';

describe('CircuitBreaker', () => {
  const clock = new ManualClock('2026-01-01T00:00:00Z');
  const breaker = new CircuitBreaker({ failures: 2, openMs: 1_000 }, clock);

  it('opens after failures in a row, lets one attempt through when the time is up, and closes on success', () => {
    breaker.failed();
    breaker.succeeded();
    breaker.failed();
    expect(breaker.admits()).toBe(true);
    breaker.failed();
    expect(breaker.admits()).toBe(false);
    clock.advance(1_000);
    expect([breaker.admits(), breaker.admits()]).toEqual([true, false]);
    breaker.failed();
    clock.advance(999);
    expect(breaker.admits()).toBe(false);
    clock.advance(1);
    expect(breaker.admits()).toBe(true);
    breaker.succeeded();
    expect([breaker.admits(), breaker.admits()]).toEqual([true, true]);
  });
});
