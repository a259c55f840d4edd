import { ManualClock } from '@platform/time';
import { CircuitBreaker, CircuitBreakers } from './circuit-breakers';

describe('CircuitBreaker', () => {
  const clock = new ManualClock('2026-01-01T00:00:00Z');
  const breaker = new CircuitBreaker({ failures: 2, openMs: 1_000 }, clock);

  it('opens after failures in a row, admits one probe after the open time, and closes on success', () => {
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

describe('CircuitBreakers', () => {
  let clock: ManualClock;
  let breakers: CircuitBreakers;
  beforeEach(() => {
    clock = new ManualClock('2026-01-01T00:00:00Z');
    breakers = new CircuitBreakers(clock);
  });

  const fail = (path: string, hasResponse: boolean, times = 1): void => {
    for (let n = 0; n < times; n += 1) breakers.failed(path, { hasResponse });
  };
  const openService = (): void => {
    for (const path of ['/1', '/2', '/3', '/4', '/5']) fail(path, false);
  };

  it.each([true, false])(
    'stop a path after five failures in a row, and no other (response: %s)',
    (hasResponse) => {
      fail('/13', hasResponse, 4);
      expect(breakers.admits('/13')).toBe(true);
      fail('/13', hasResponse, 100);
      expect([breakers.admits('/13'), breakers.admits('/77')]).toEqual([false, true]);
    },
  );

  it('stop all paths after five in a row without a response', () => {
    for (const path of ['/1', '/2', '/3', '/4']) fail(path, false, 2);
    expect(breakers.admits('/77')).toBe(true);
    fail('/5', false);
    expect(breakers.admits('/77')).toBe(false);
  });

  it('stop no other path while there are responses in between, even 5xx', () => {
    for (let n = 0; n < 20; n += 1) {
      fail(`/${String(n)}`, false);
      if (n % 2 === 0) fail('/13', true);
      else breakers.succeeded('/78');
    }
    for (let n = 0; n < 20; n += 1) fail(`/failing/${String(n)}`, true);
    expect(breakers.admits('/77')).toBe(true);
  });

  it('admit one probe after the open time, and all requests after its success', () => {
    openService();
    clock.advance(5_000);
    expect([breakers.admits('/77'), breakers.admits('/78')]).toEqual([true, false]);
    fail('/77', false);
    clock.advance(4_999);
    expect(breakers.admits('/78')).toBe(false);
    clock.advance(1);
    expect(breakers.admits('/78')).toBe(true);
    breakers.succeeded('/78');
    expect([breakers.admits('/77'), breakers.admits('/78')]).toEqual([true, true]);
  });

  it('leave the probe to a path that does not keep failing', () => {
    openService();
    fail('/1', false, 4);
    clock.advance(5_000);
    expect([breakers.admits('/1'), breakers.admits('/77')]).toEqual([false, true]);
  });

  it('keep the probe of a path while all are stopped', () => {
    fail('/1', false, 5);
    openService();
    clock.advance(10_000);
    expect(breakers.admits('/77')).toBe(true);
    // The service's probe is in progress, so this path gets no attempt.
    expect(breakers.admits('/1')).toBe(false);
    breakers.succeeded('/77');
    expect([breakers.admits('/1'), breakers.admits('/1')]).toEqual([true, false]);
  });

  it('leave the probe of the service to a path that does not fail, however many do', () => {
    for (const path of ['/1', '/2', '/3', '/4', '/5']) fail(path, false, 5);
    for (let round = 0; round < 5; round += 1) {
      clock.advance(5_000);
      expect(['/1', '/2', '/3', '/4', '/5'].filter((path) => breakers.admits(path))).toEqual([]);
      expect(breakers.admits('/77')).toBe(true);
      fail('/77', false);
    }
    clock.advance(10_000);
    expect(breakers.admits('/1')).toBe(true);
  });

  it('remember a thousand failing paths', () => {
    fail('/first', true, 5);
    for (let n = 0; n < 999; n += 1) fail(`/${String(n)}`, true);
    expect(breakers.admits('/first')).toBe(false);
    fail('/last', true);
    expect(breakers.admits('/first')).toBe(true);
  });
});
