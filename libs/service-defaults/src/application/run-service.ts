import { Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SYSTEM_CLOCK } from '@platform/time';
import type { AddressInfo } from 'node:net';
import { ServiceLogger } from '../logging/service-logger';
import { Metrics, startMetricsServer } from '../metrics/metrics';
import { createServiceApplication } from './create-service-application';
import type { ServiceDefinition } from './create-service-application';
import { OpenConnections, stopService } from './stop-service';

const PRODUCTION_GRACE_MS = 5_000;
/** Time for closing the database and the broker, after the limit for work in flight. */
const CLOSING_LIMIT_MS = 10_000;
/** Signals within this time count as one, because a terminal and npm both deliver Ctrl-C. */
const SAME_SIGNAL_MS = 1_000;

/**
 * Entry point of `main.ts`. Runs a service until SIGTERM or SIGINT, then stops it gracefully and ends the
 * process. The exit code is 0, or 1 if the start or the stop failed or an error was uncaught. A second signal
 * ends the process at once.
 * @param name the name in log lines until the definition is available
 * @param define loads the configuration and builds the definition
 */
export async function runService(name: string, define: () => ServiceDefinition): Promise<void> {
  const running = new ServiceProcess(definedOrExit(name, define));
  running.watchSignals();
  await running.start();
}

function definedOrExit(name: string, define: () => ServiceDefinition): ServiceDefinition {
  try {
    return define();
  } catch (error) {
    new ServiceLogger({ name, level: 'info' }).fatal(error);
    process.exit(1);
  }
}

class ServiceProcess {
  private app: NestFastifyApplication | null = null;
  private connections: OpenConnections | null = null;
  private readonly logger: ServiceLogger;
  private stoppingSinceMs: number | null = null;

  constructor(private readonly definition: ServiceDefinition) {
    this.logger = new ServiceLogger({ name: definition.name, level: definition.config.LOG_LEVEL });
  }

  watchSignals(): void {
    process.on('SIGTERM', (signal) => this.onSignal(signal));
    process.on('SIGINT', (signal) => this.onSignal(signal));
    // Node's own report of an uncaught error would print all its members, statement parameters included.
    process.on('uncaughtException', (error) => this.fail(error));
  }

  async start(): Promise<void> {
    const { config } = this.definition;
    const host = config.HOST ?? (config.NODE_ENV === 'production' ? '0.0.0.0' : '127.0.0.1');
    try {
      const app = await createServiceApplication(this.definition);
      const metrics = app.get(Metrics);
      metrics.collectProcessMetrics();
      await startMetricsServer(metrics.registry, config.METRICS_PORT, config.METRICS_HOST ?? host);
      this.connections = new OpenConnections(app.getHttpServer());
      await app.listen(config.PORT, host);
      this.app = app;
      // Not Nest's getUrl(), which reports 127.0.0.1 for 0.0.0.0.
      const { address, port } = app.getHttpServer().address() as AddressInfo;
      this.logger.log(`listening on ${address} port ${port}`, this.definition.name);
    } catch (error) {
      this.fail(error);
    }
  }

  private onSignal(signal: string): void {
    const nowMs = SYSTEM_CLOCK.monotonicMs();
    if (this.stoppingSinceMs === null) {
      this.stoppingSinceMs = nowMs;
      this.logger.log(`${signal} received`, 'Shutdown');
      void this.stop();
    } else if (nowMs - this.stoppingSinceMs > SAME_SIGNAL_MS) {
      this.logger.warn(`${signal} received again: ending at once`, 'Shutdown');
      this.exit(1);
    }
  }

  private async stop(): Promise<void> {
    const { app, connections, definition } = this;
    // Nothing has been accepted yet, so there is nothing to finish.
    if (app === null || connections === null) return this.exit(0);
    const { config } = definition;
    const graceMs = config.SHUTDOWN_GRACE_MS ?? (config.NODE_ENV === 'production' ? PRODUCTION_GRACE_MS : 0);
    const timeoutMs = config.SHUTDOWN_TIMEOUT_MS;
    const limit = setTimeout(
      () => {
        this.fail(new Error('closing took too long'));
      },
      graceMs + timeoutMs + CLOSING_LIMIT_MS,
    );
    try {
      await stopService(app, connections, { graceMs, timeoutMs });
      clearTimeout(limit);
      this.logger.log('stopped', 'Shutdown');
      this.exit(0);
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    this.logger.fatal(error);
    this.exit(1);
  }

  private exit(code: number): void {
    this.logger.flush();
    process.exit(code);
  }
}

/**
 * A short-lived program could not do its work. Its message alone tells the operator why, and holds no secret.
 */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/**
 * Runs a short-lived program, such as a migration, with the services' logger. If it fails, the process ends
 * with exit code 1 and the reason as its last line.
 * @param name the name in its log lines, e.g. `task-service-migrate`
 */
export async function runCommand(name: string, work: () => Promise<unknown>): Promise<void> {
  const logger = new ServiceLogger({ name, level: 'info' });
  Logger.overrideLogger(logger);
  try {
    await work();
  } catch (error) {
    logger.fatal(error instanceof CommandError ? error.message : error);
    // Not process.exit(), which could discard output still on its way to a pipe.
    process.exitCode = 1;
  }
  logger.flush();
}
