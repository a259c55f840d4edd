import { SlowestHash } from './passwords.service';

describe('SlowestHash', () => {
  it('is the shortest time of the most expensive hash', () => {
    const slowest = new SlowestHash();
    expect(slowest.ms).toBe(0);
    slowest.record('cheap', 900);
    slowest.record('costly', 500);
    slowest.record('cheap', 20);
    slowest.record('costly', 700);
    expect(slowest.ms).toBe(500);
  });

  it('never delays a refusal by more than two seconds', () => {
    const slowest = new SlowestHash();
    slowest.record('endless', 60_000);
    expect(slowest.ms).toBe(2_000);
  });
});
