import { LANE_COUNT, laneOf } from './lanes';
import { PARK_AFTER_ATTEMPTS, relayDelayMs } from './relay-backoff';

describe('relay lanes', () => {
  it('never changes the lane of a facility', () => {
    // Fixed values: replicas of two releases must agree during a rolling restart.

    expect(laneOf(501)).toBe(1);
  });

  it('spreads facilities over all lanes about evenly', () => {
    const sizes = new Array<number>(LANE_COUNT).fill(0);
    for (let facilityId = 1; facilityId <= 16_000; facilityId += 1) {
      const lane = laneOf(facilityId);
      sizes[lane] = (sizes[lane] ?? 0) + 1;
    }
    expect(Math.min(...sizes)).toBeGreaterThan(850);
    expect(Math.max(...sizes)).toBeLessThan(1_150);
  });
});

describe('the relay backoff', () => {
  it('doubles from one second up to five minutes', () => {
    expect([1, 2, 3, 9, 10, 19].map(relayDelayMs)).toEqual([1_000, 2_000, 4_000, 256_000, 300_000, 300_000]);
  });

  it('parks after twenty attempts', () => {
    expect(PARK_AFTER_ATTEMPTS).toBe(20);
    expect(relayDelayMs(20)).toBeNull();
    expect(relayDelayMs(21)).toBeNull();
  });

  it.each([0, -1, 1.5, NaN])('refuses %p attempts', (attempts) => {
    expect(() => relayDelayMs(attempts)).toThrow(RangeError);
  });
});
