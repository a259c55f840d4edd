import { Metrics } from '@platform/service-defaults';
import { HOUR_MS, ManualClock } from '@platform/time';
import { WriteAllowance } from './write-allowance';

const KIB = 1_024;

describe('WriteAllowance', () => {
  const make = (bytesPerHour: number) => {
    const [clock, metrics] = [new ManualClock(new Date(0)), new Metrics()];
    const allowance = new WriteAllowance(bytesPerHour, clock, metrics);
    const take = (caller: string, entries: number, valueBytes: number) => {
      const reservation = allowance.reservationOf(caller);
      reservation.take(entries, valueBytes);
      return reservation;
    };
    return { clock, metrics, allowance, take };
  };
  const REFUSED = expect.objectContaining({ reason: 'too-much-written' });

  it('refuses and counts a write beyond the hourly allowance, for this caller only', async () => {
    const { take, metrics } = make(10 * KIB);
    for (let n = 0; n < 5; n += 1) take('a', 1, KIB);
    expect(() => take('a', 1, 0)).toThrow(REFUSED);
    take('b', 1, 0);
    expect(await metrics.registry.getSingleMetricAsString('settings_writes_refused_total')).toMatch(/ 1$/m);
  });

  it('refills within an hour, and never above the allowance', () => {
    const { take, clock } = make(10 * KIB);
    take('a', 10, 0);
    clock.advance(HOUR_MS / 10);
    take('a', 1, 0);
    expect(() => take('a', 1, 0)).toThrow(REFUSED);
    clock.advance(5 * HOUR_MS);
    take('a', 10, 0);
    expect(() => take('a', 1, 0)).toThrow(REFUSED);
  });

  it('charges a request once, however often it is retried, and not at all if it wrote nothing', () => {
    const { take } = make(10 * KIB);
    const tried = take('a', 6, 0);
    tried.take(6, 0);
    take('a', 4, 0);
    expect(() => take('a', 1, 0)).toThrow(REFUSED);
    tried.giveBack();
    tried.giveBack();
    take('a', 6, 0);
    expect(() => take('a', 1, 0)).toThrow(REFUSED);
  });

  it('gives back nothing for a request that it refused', () => {
    const { take, allowance } = make(10 * KIB);
    take('a', 10, 0);
    const refused = allowance.reservationOf('a');
    expect(() => refused.take(5, 0)).toThrow(REFUSED);
    refused.giveBack();
    expect(() => take('a', 1, 0)).toThrow(REFUSED);
  });

  it('lets a full account exceed the hourly allowance once, and charges it for that', () => {
    const { take, clock } = make(10 * KIB);
    take('a', 30, 0);
    clock.advance(2 * HOUR_MS);
    expect(() => take('a', 1, 0)).toThrow(REFUSED);
    clock.advance(HOUR_MS);
    take('a', 10, 0);
    expect(() => take('a', 20, 0)).toThrow(REFUSED);
  });

  it('evicts the least recent writer, never a busy one', () => {
    const { take } = make(10 * KIB);
    take('busy', 5, 0);
    for (let n = 0; n < 6_000; n += 1) take(`early ${String(n)}`, 1, 0);
    take('busy', 5, 0);
    for (let n = 0; n < 6_000; n += 1) take(`late ${String(n)}`, 1, 0);
    expect(() => take('busy', 1, 0)).toThrow(REFUSED);
  });

  it('has no limit for 0', () => {
    const { take } = make(0);
    expect(() => take('a', 1_000_000, 1e12)).not.toThrow();
  });
});
