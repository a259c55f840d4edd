import { Metrics } from '@platform/service-defaults';
import { HOUR_MS, ManualClock } from '@platform/time';
import { WriteAllowance } from './write-allowance';

const KIB = 1_024;

describe('WriteAllowance', () => {
  const make = (bytesPerHour: number) => {
    const [clock, metrics] = [new ManualClock(new Date(0)), new Metrics()];
    return { clock, metrics, allowance: new WriteAllowance(bytesPerHour, clock, metrics) };
  };

  it('refuses what is more than an hour’s, to this caller only, and counts it', async () => {
    const { allowance, metrics } = make(10 * KIB);
    for (let n = 0; n < 5; n += 1) allowance.take('a', 1, KIB);
    expect(() => allowance.take('a', 1, 0)).toThrow(expect.objectContaining({ reason: 'too-much-written' }));
    allowance.take('b', 1, 0);
    expect(await metrics.registry.getSingleMetricAsString('settings_writes_refused_total')).toMatch(/ 1$/m);
  });

  it('is filled again over an hour, and never above', () => {
    const { allowance, clock } = make(10 * KIB);
    allowance.take('a', 10, 0);
    clock.advance(HOUR_MS / 10);
    allowance.take('a', 1, 0);
    expect(() => allowance.take('a', 1, 0)).toThrow();
    clock.advance(5 * HOUR_MS);
    allowance.take('a', 10, 0);
    expect(() => allowance.take('a', 1, 0)).toThrow();
  });

  it('has no limit for 0', () => {
    const { allowance } = make(0);
    expect(() => allowance.take('a', 1_000_000, 1e12)).not.toThrow();
  });
});
