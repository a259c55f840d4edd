import { Injectable, Logger } from '@nestjs/common';
import { SYSTEM_CLOCK, withTimeout } from '@platform/time';
import type { Clock } from '@platform/time';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from '../logging/log-safe';
import { PROBLEM_JSON, renderProblem } from '../problems/problem';
import type { Problem } from '../problems/problem';

/** A named condition. `check` resolves if it holds and rejects if it does not. */
interface HealthCheck {
  name: string;
  check(): Promise<void>;
}

/**
 * The conditions for this replica to be ready and to have started. Libraries add their checks when their
 * module starts.
 */
@Injectable()
export class HealthRegistry {
  private readonly readiness: HealthCheck[] = [];
  private readonly startup: HealthCheck[] = [];
  private shuttingDown = false;

  /** Adds a condition for receiving traffic. Probes of `/health/ready` check it at most once a second. */
  addReadinessCheck(check: HealthCheck): void {
    this.readiness.push(check);
  }

  /**
   * Adds a condition that stays true once it holds, e.g. "migrations are applied". Readiness requires it too.
   */
  addStartupCheck(check: HealthCheck): void {
    this.startup.push(check);
  }

  get readinessChecks(): readonly HealthCheck[] {
    return this.readiness;
  }

  get startupChecks(): readonly HealthCheck[] {
    return this.startup;
  }

  /** Reports this replica as not ready from now on, so that it receives no new traffic. */
  markShuttingDown(): void {
    this.shuttingDown = true;
  }

  get isShuttingDown(): boolean {
    return this.shuttingDown;
  }
}

const CHECK_LIMIT_MS = 2_000;

/** `excluded` means that the probe excluded the check, so it was not run. */
type CheckState = 'ok' | 'failed' | 'excluded';

/** Whether every condition holds, and the state of each. */
export interface HealthReport {
  healthy: boolean;
  checks: Record<string, CheckState>;
}

/** Maximum age of a cached result, counted from the start of its check. */
const MAX_AGE_MS = 1_000;
/**
 * Maximum age of the result of a check that has never passed. Short, so that a service is ready as soon as
 * the check passes.
 */
const STARTING_MAX_AGE_MS = 50;

/** One run of a check; its state resolves when the check ends. */
interface CheckRun {
  readonly startedMs: number;
  readonly state: Promise<CheckState>;
  hasEnded: boolean;
}

/**
 * Reports health to probes. Concurrent probes share one run of a check, and its result is reused for 1 s (50
 * ms until it passes for the first time), so that probes cannot overload the dependencies.
 */
export class HealthReporter {
  private readonly started = new Set<HealthCheck>();
  private readonly lastRuns = new Map<HealthCheck, CheckRun>();
  private readonly passed = new Set<HealthCheck>();

  /** @param onFailure called for each failed check, e.g. to log the error */
  constructor(
    private readonly registry: HealthRegistry,
    private readonly onFailure: (check: string, error: unknown) => void,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {}

  /**
   * Ready means: started, all readiness checks pass, and not shutting down.
   * @param excluded names of readiness checks that are skipped and do not count; unknown names have no effect
   */
  async ready(excluded: ReadonlySet<string> = new Set()): Promise<HealthReport> {
    if (this.registry.isShuttingDown) return { healthy: false, checks: { shutdown: 'failed' } };
    const startup = await this.hasStarted();
    const now = await this.run(this.registry.readinessChecks, excluded);
    return { healthy: startup.healthy && now.healthy, checks: { ...startup.checks, ...now.checks } };
  }

  /** Names of the checks that can be excluded. Startup checks and shutdown cannot. */
  get readinessNames(): string[] {
    return this.registry.readinessChecks.map(({ name }) => name);
  }

  /** Started means that each startup check has passed once. */
  async hasStarted(): Promise<HealthReport> {
    const pending = this.registry.startupChecks.filter((check) => !this.started.has(check));
    const report = await this.run(pending);
    for (const check of pending) if (report.checks[check.name] === 'ok') this.started.add(check);
    const done = [...this.started].map(({ name }) => [name, 'ok'] as const);
    return { ...report, checks: { ...Object.fromEntries(done), ...report.checks } };
  }

  private async run(
    checks: readonly HealthCheck[],
    excluded: ReadonlySet<string> = new Set(),
  ): Promise<HealthReport> {
    const states = await Promise.all(
      checks.map(
        async (check) =>
          [check.name, excluded.has(check.name) ? 'excluded' : await this.cachedStateOf(check)] as const,
      ),
    );
    return { healthy: states.every(([, state]) => state !== 'failed'), checks: Object.fromEntries(states) };
  }

  private cachedStateOf(check: HealthCheck): Promise<CheckState> {
    const nowMs = this.clock.monotonicMs();
    const last = this.lastRuns.get(check);
    const maxAgeMs = this.passed.has(check) ? MAX_AGE_MS : STARTING_MAX_AGE_MS;
    if (last !== undefined && (!last.hasEnded || nowMs - last.startedMs <= maxAgeMs)) return last.state;
    const run: CheckRun = {
      startedMs: nowMs,
      state: this.stateOf(check).finally(() => (run.hasEnded = true)),
      hasEnded: false,
    };
    this.lastRuns.set(check, run);
    return run.state;
  }

  private async stateOf(condition: HealthCheck): Promise<CheckState> {
    try {
      await withTimeout(condition.check(), CHECK_LIMIT_MS);
      this.passed.add(condition);
      return 'ok';
    } catch (error) {
      this.onFailure(condition.name, error);
      return 'failed';
    }
  }
}

/**
 * Adds `/health/live` (the process responds), `/health/ready` (the replica may receive traffic) and
 * `/health/startup` (started). They are routes of Fastify itself, so that an app's guard cannot block them by
 * accident. `?exclude=NAME`, which may be repeated, skips a readiness check for a caller that does not need
 * the dependency. An unknown name is a 400, so that a typo is noticed.
 */
export function addHealthRoutes(instance: FastifyInstance, registry: HealthRegistry): void {
  const logger = new Logger('Health');
  const reporter = new HealthReporter(registry, (check, error) => {
    // A plain error's message names the failed condition; a stack trace would only slow down a start.
    const isPlain = error instanceof Error && error.constructor === Error;
    logger.warn(isPlain ? error.message : error, `Health ${check}`);
  });
  instance.get('/health/live', (_request, reply) => {
    void reply.header('cache-control', 'no-store').send({ status: 'ok' });
  });
  instance.get('/health/ready', async (request, reply) => {
    const excluded = namesIn((request.query as Record<string, unknown>)['exclude']);
    const known = reporter.readinessNames;
    if (excluded.every((name) => known.includes(name)))
      return sendReport(await reporter.ready(new Set(excluded)), request, reply);
    const errors = { exclude: [`Must be one of: ${known.join(', ')}.`] };
    const problem = { status: 400, detail: 'There is no such readiness check.', errors };
    return sendProblem(problem, request, reply);
  });
  instance.get('/health/startup', async (request, reply) =>
    sendReport(await reporter.hasStarted(), request, reply),
  );
}

/** @param value value of a query parameter: a string, or a list of strings if the parameter is repeated */
function namesIn(value: unknown): string[] {
  return [value ?? []].flat().map(String);
}

function sendReport(
  { healthy, checks }: HealthReport,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  reply.header('cache-control', 'no-store');
  if (healthy) return reply.send({ status: 'ok', checks });
  const problem = { status: 503, detail: 'Not ready.', extensions: { checks } };
  return sendProblem(problem, request, reply.header('retry-after', '1'));
}

function sendProblem(problem: Problem, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply
    .code(problem.status)
    .header('cache-control', 'no-store')
    .header('content-type', PROBLEM_JSON)
    .send(renderProblem(problem, pathOf(request.url), request.id));
}
