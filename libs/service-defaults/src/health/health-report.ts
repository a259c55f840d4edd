import { sleep } from '@platform/time';
import type { HealthCheck, HealthRegistry } from './health-registry';

const CHECK_LIMIT_MS = 2_000;

export type CheckState = 'ok' | 'failed';

/** Whether every condition holds, and which. */
export interface HealthReport {
  healthy: boolean;
  checks: Record<string, CheckState>;
}

/** Answers probes. Callers that come while checks run share one answer, so that probing cannot load what it checks. */
export class HealthReporter {
  private readonly started = new Set<HealthCheck>();
  private readiness: Promise<HealthReport> | null = null;
  private startup: Promise<HealthReport> | null = null;

  /** @param onFailure told about each failed check, e.g. to log why */
  constructor(
    private readonly registry: HealthRegistry,
    private readonly onFailure: (check: string, error: unknown) => void,
  ) {}

  /** Ready: started, everything needed is reachable, and not shutting down. */
  async ready(): Promise<HealthReport> {
    if (this.registry.isShuttingDown) return { healthy: false, checks: { shutdown: 'failed' } };
    this.readiness ??= this.runReadiness().finally(() => (this.readiness = null));
    return this.readiness;
  }

  /** Started: each startup condition held once. */
  async hasStarted(): Promise<HealthReport> {
    this.startup ??= this.runStartup().finally(() => (this.startup = null));
    return this.startup;
  }

  private async runReadiness(): Promise<HealthReport> {
    const startup = await this.hasStarted();
    const now = await this.run(this.registry.readinessChecks);
    return { healthy: startup.healthy && now.healthy, checks: { ...startup.checks, ...now.checks } };
  }

  private async runStartup(): Promise<HealthReport> {
    const pending = this.registry.startupChecks.filter((check) => !this.started.has(check));
    const report = await this.run(pending);
    for (const check of pending) if (report.checks[check.name] === 'ok') this.started.add(check);
    const done = [...this.started].map(({ name }) => [name, 'ok'] as const);
    return { ...report, checks: { ...Object.fromEntries(done), ...report.checks } };
  }

  private async run(checks: readonly HealthCheck[]): Promise<HealthReport> {
    const states = await Promise.all(
      checks.map(async (check) => [check.name, await this.stateOf(check)] as const),
    );
    return { healthy: states.every(([, state]) => state === 'ok'), checks: Object.fromEntries(states) };
  }

  private async stateOf(condition: HealthCheck): Promise<CheckState> {
    const limit = new AbortController();
    try {
      await Promise.race([condition.check(), expire(limit.signal)]);
      return 'ok';
    } catch (error) {
      this.onFailure(condition.name, error);
      return 'failed';
    } finally {
      limit.abort();
    }
  }
}

async function expire(signal: AbortSignal): Promise<never> {
  await sleep(CHECK_LIMIT_MS, signal);
  throw new Error(`no answer within ${CHECK_LIMIT_MS} ms`);
}
