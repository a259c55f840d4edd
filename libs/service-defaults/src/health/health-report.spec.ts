import { HealthRegistry } from '../index';
import { HealthReporter } from './health-report';

describe('HealthReporter', () => {
  const failures: string[] = [];
  const reporterOf = (registry: HealthRegistry): HealthReporter =>
    new HealthReporter(registry, (check) => failures.push(check));

  beforeEach(() => failures.splice(0));

  it('is ready when everything holds, and names what does not', async () => {
    const registry = new HealthRegistry();
    registry.addReadinessCheck({ name: 'database', check: () => Promise.resolve() });
    registry.addReadinessCheck({ name: 'broker', check: () => Promise.reject(new Error('down')) });
    expect(await reporterOf(registry).ready()).toEqual({
      healthy: false,
      checks: { database: 'ok', broker: 'failed' },
    });
    expect(failures).toEqual(['broker']);
  });

  it('asks a startup condition until it holds, then never again', async () => {
    const registry = new HealthRegistry();
    let asked = 0;
    const check = (): Promise<void> =>
      (asked += 1) < 2 ? Promise.reject(new Error('not yet')) : Promise.resolve();
    registry.addStartupCheck({ name: 'migrations', check });
    const reporter = reporterOf(registry);
    expect((await reporter.ready()).healthy).toBe(false);
    expect(await reporter.hasStarted()).toEqual({ healthy: true, checks: { migrations: 'ok' } });
    expect((await reporter.ready()).healthy).toBe(true);
    expect(asked).toBe(2);
  });

  it('lets probes that come together share one round of checks', async () => {
    const registry = new HealthRegistry();
    let asked = 0;
    registry.addReadinessCheck({ name: 'database', check: () => Promise.resolve(void (asked += 1)) });
    const reporter = reporterOf(registry);
    await Promise.all(Array.from({ length: 20 }, () => reporter.ready()));
    expect(asked).toBe(1);
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

  it('is not ready while shutting down, without asking anybody', async () => {
    const registry = new HealthRegistry();
    registry.addReadinessCheck({ name: 'database', check: () => Promise.reject(new Error('asked')) });
    registry.markShuttingDown();
    expect(await reporterOf(registry).ready()).toEqual({ healthy: false, checks: { shutdown: 'failed' } });
    expect(failures).toEqual([]);
  });
});
