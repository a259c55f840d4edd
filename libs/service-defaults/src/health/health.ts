import { Injectable, Logger } from '@nestjs/common';
import { SYSTEM_CLOCK, withTimeout } from '@platform/time';
import type { Clock } from '@platform/time';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from '../logging/log-safe';
import { PROBLEM_JSON, renderProblem } from '../problems/problem';
import type { Problem } from '../problems/problem';

/** A named condition: `check` resolves when it holds and rejects when it does not. */
interface HealthCheck {
  name: string;
  check(): Promise<void>;
}

/**
 * What this replica needs to be ready and to have started. Libraries add their checks when their module
 * starts.
 */
@Injectable()
export class HealthRegistry {
  private readonly readiness: HealthCheck[] = [];
  private readonly startup: HealthCheck[] = [];
  private shuttingDown = false;

  /** A condition for taking traffic, asked by probes of `/health/ready` at most once a second. */
  addReadinessCheck(check: HealthCheck): void {
    this.readiness.push(check);
  }

  /** A condition that stays true once it was, e.g. "migrations are applied"; readiness needs it too. */
  addStartupCheck(check: HealthCheck): void {
    this.startup.push(check);
  }

  get readinessChecks(): readonly HealthCheck[] {
    return this.readiness;
  }

  get startupChecks(): readonly HealthCheck[] {
    return this.startup;
  }

  /** From now on this replica says "not ready", so that no new traffic is sent to it. */
  markShuttingDown(): void {
    this.shuttingDown = true;
  }

  get isShuttingDown(): boolean {
    return this.shuttingDown;
  }
}

const CHECK_LIMIT_MS = 2_000;

/** `excluded`: not asked, because whoever asked said so. */
type CheckState = 'ok' | 'failed' | 'excluded';

/** Whether every condition holds, and which. */
export interface HealthReport {
  healthy: boolean;
  checks: Record<string, CheckState>;
}

/** How old a result may be, counted from when its check began. */
const MAX_AGE_MS = 1_000;
/** The same of a check that has never held: a service is ready as soon as it does. */
const STARTING_MAX_AGE_MS = 50;

/** One asking of a check; its state comes when the check has ended. */
interface Asking {
  readonly startedMs: number;
  readonly state: Promise<CheckState>;
  hasEnded: boolean;
}

/** Answers probes. A check is asked at most once a second, until it holds for the first time twenty times,
 *  and by one caller at a time, so that probing cannot load what it checks. */
export class HealthReporter {
  private readonly started = new Set<HealthCheck>();
  private readonly askings = new Map<HealthCheck, Asking>();
  private readonly held = new Set<HealthCheck>();

  /** @param onFailure called for each failed check, e.g. to log why */
  constructor(
    private readonly registry: HealthRegistry,
    private readonly onFailure: (check: string, error: unknown) => void,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {}

  /** Ready: started, everything needed is reachable, and not shutting down.
   *  @param excluded names of readiness checks that are not asked and do not count; others have no effect */
  async ready(excluded: ReadonlySet<string> = new Set()): Promise<HealthReport> {
    if (this.registry.isShuttingDown) return { healthy: false, checks: { shutdown: 'failed' } };
    const startup = await this.hasStarted();
    const now = await this.run(this.registry.readinessChecks, excluded);
    return { healthy: startup.healthy && now.healthy, checks: { ...startup.checks, ...now.checks } };
  }

  /** What can be excluded: never that the service has started, nor that it stops. */
  get readinessNames(): string[] {
    return this.registry.readinessChecks.map(({ name }) => name);
  }

  /** Started: each startup condition held once. */
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
          [check.name, excluded.has(check.name) ? 'excluded' : await this.sharedStateOf(check)] as const,
      ),
    );
    return { healthy: states.every(([, state]) => state !== 'failed'), checks: Object.fromEntries(states) };
  }

  private sharedStateOf(check: HealthCheck): Promise<CheckState> {
    const nowMs = this.clock.monotonicMs();
    const last = this.askings.get(check);
    const maxAgeMs = this.held.has(check) ? MAX_AGE_MS : STARTING_MAX_AGE_MS;
    if (last !== undefined && (!last.hasEnded || nowMs - last.startedMs <= maxAgeMs)) return last.state;
    const asking: Asking = {
      startedMs: nowMs,
      state: this.stateOf(check).finally(() => (asking.hasEnded = true)),
      hasEnded: false,
    };
    this.askings.set(check, asking);
    return asking.state;
  }

  private async stateOf(condition: HealthCheck): Promise<CheckState> {
    try {
      await withTimeout(condition.check(), CHECK_LIMIT_MS);
      this.held.add(condition);
      return 'ok';
    } catch (error) {
      this.onFailure(condition.name, error);
      return 'failed';
    }
  }
}

/**
 * `/health/live` (this process answers), `/health/ready` (send traffic here), `/health/startup` (started).
 * They sit on Fastify itself: no guard of an app can close them by accident. `?exclude=<check>`, as often as
 * wanted, leaves readiness checks out, for who can do without what they look at; a name that there is not is
 * 400, so that a mistyped one is found.
 */
export function addHealthRoutes(instance: FastifyInstance, registry: HealthRegistry): void {
  const logger = new Logger('Health');
  const reporter = new HealthReporter(registry, (check, error) => {
    // The message of a plain error says which condition does not hold; its stack would only delay a start.
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
      return answer(await reporter.ready(new Set(excluded)), request, reply);
    const errors = { exclude: [`Must be one of: ${known.join(', ')}.`] };
    const problem = { status: 400, detail: 'There is no such readiness check.', errors };
    return sendProblem(problem, request, reply);
  });
  instance.get('/health/startup', async (request, reply) =>
    answer(await reporter.hasStarted(), request, reply),
  );
}

/** @param value of a query parameter: text, or a list of texts where it is repeated */
function namesIn(value: unknown): string[] {
  return [value ?? []].flat().map(String);
}

function answer(
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
