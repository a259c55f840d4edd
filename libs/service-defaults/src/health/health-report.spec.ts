import { ManualClock } from '@platform/time';
import { HealthRegistry } from '../index';
import { HealthReporter } from './health';

describe('HealthReporter', () => {
  const failures: string[] = [];
  const clock = new ManualClock('2026-01-01T00:00:00Z');
  const reporterOf = (registry: HealthRegistry): HealthReporter =>
    new HealthReporter(registry, (check) => failures.push(check), clock);

  beforeEach(() => failures.splice(0));

  it('is ready when all checks pass, and names those that fail', async () => {
    const registry = new HealthRegistry();
    registry.addReadinessCheck({ name: 'database', check: () => Promise.resolve() });
    registry.addReadinessCheck({ name: 'broker', check: () => Promise.reject(new Error('down')) });
    expect(await reporterOf(registry).ready()).toEqual({
      healthy: false,
      checks: { database: 'ok', broker: 'failed' },
    });
    expect(failures).toEqual(['broker']);
  });

  it('runs a startup check until it passes, then never again', async () => {
    const registry = new HealthRegistry();
    let runs = 0;
    const check = (): Promise<void> =>
      (runs += 1) < 2 ? Promise.reject(new Error('not yet')) : Promise.resolve();
    registry.addStartupCheck({ name: 'migrations', check });
    const reporter = reporterOf(registry);
    expect((await reporter.ready()).healthy).toBe(false);
    clock.advance(1_001);
    expect(await reporter.hasStarted()).toEqual({ healthy: true, checks: { migrations: 'ok' } });
    expect((await reporter.ready()).healthy).toBe(true);
    expect(runs).toBe(2);
  });

  it('shares one run of a check between concurrent probes', async () => {
    const registry = new HealthRegistry();
    let runs = 0;
    registry.addReadinessCheck({ name: 'database', check: () => Promise.resolve(void (runs += 1)) });
    const reporter = reporterOf(registry);
    await Promise.all(Array.from({ length: 20 }, () => reporter.ready()));
    expect(runs).toBe(1);
  });

  it('reuses a result for 1 s, but reports a shutdown at once', async () => {
    const registry = new HealthRegistry();
    let isUp = true;
    let runs = 0;
    const check = (): Promise<void> => {
      runs += 1;
      return isUp ? Promise.resolve() : Promise.reject(new Error('down'));
    };
    registry.addReadinessCheck({ name: 'database', check });
    const reporter = reporterOf(registry);
    for (let probe = 0; probe < 100; probe += 1) expect((await reporter.ready()).healthy).toBe(true);
    isUp = false;
    clock.advance(1_000);
    expect((await reporter.ready()).healthy).toBe(true);
    expect(runs).toBe(1);
    clock.advance(1);
    expect((await reporter.ready()).healthy).toBe(false);
    expect((await reporter.ready()).healthy).toBe(false);
    expect(runs).toBe(2);
    registry.markShuttingDown();
    expect((await reporter.ready()).checks).toEqual({ shutdown: 'failed' });
  });

  it('reruns a check that has never passed every 50 ms, so that startup ends without delay', async () => {
    const registry = new HealthRegistry();
    let runs = 0;
    const check = (): Promise<void> =>
      (runs += 1) < 3 ? Promise.reject(new Error('not yet')) : Promise.resolve();
    registry.addReadinessCheck({ name: 'broker', check });
    const reporter = reporterOf(registry);
    const seen: boolean[] = [];
    for (let probe = 0; probe < 20; probe += 1) {
      seen.push((await reporter.ready()).healthy);
      clock.advance(10);
    }
    expect(runs).toBe(3);
    expect(seen.indexOf(true)).toBe(12);
  });

  it('neither runs nor counts excluded checks, and reports them as excluded', async () => {
    const registry = new HealthRegistry();
    registry.addReadinessCheck({ name: 'database', check: () => Promise.resolve() });
    registry.addReadinessCheck({ name: 'broker', check: () => Promise.reject(new Error('down')) });
    const reporter = reporterOf(registry);
    expect(await reporter.ready(new Set(['broker']))).toEqual({
      healthy: true,
      checks: { database: 'ok', broker: 'excluded' },
    });
    expect(failures).toEqual([]);
    expect(reporter.readinessNames).toEqual(['database', 'broker']);
  });

  it('counts every check for a probe without exclusions, even while another probe excludes some', async () => {
    const registry = new HealthRegistry();
    registry.addReadinessCheck({ name: 'broker', check: () => Promise.reject(new Error('down')) });
    const reporter = reporterOf(registry);
    const reports = await Promise.all([reporter.ready(new Set(['broker'])), reporter.ready()]);
    expect(reports.map(({ healthy }) => healthy)).toEqual([true, false]);
  });

  it('does not allow startup checks or shutdown to be excluded', async () => {
    const registry = new HealthRegistry();
    registry.addStartupCheck({ name: 'migrations', check: () => Promise.reject(new Error('none')) });
    const reporter = reporterOf(registry);
    const excluded = new Set(['migrations', 'shutdown']);
    expect((await reporter.ready(excluded)).healthy).toBe(false);
    registry.markShuttingDown();
    expect((await reporter.ready(excluded)).healthy).toBe(false);
    expect(reporter.readinessNames).toEqual([]);
  });

  it('does not wait for a check that hangs', async () => {
    jest.useFakeTimers();
    const registry = new HealthRegistry();
    registry.addReadinessCheck({ name: 'database', check: () => new Promise(() => undefined) });
    const report = reporterOf(registry).ready();
    await jest.advanceTimersByTimeAsync(2_000);
    expect((await report).healthy).toBe(false);
    jest.useRealTimers();
  });

  it('is not ready while shutting down, without running any check', async () => {
    const registry = new HealthRegistry();
    registry.addReadinessCheck({ name: 'database', check: () => Promise.reject(new Error('must not run')) });
    registry.markShuttingDown();
    expect(await reporterOf(registry).ready()).toEqual({ healthy: false, checks: { shutdown: 'failed' } });
    expect(failures).toEqual([]);
  });
});
