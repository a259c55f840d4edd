import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable, Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { sleep, SYSTEM_CLOCK, withTimeout } from '@platform/time';
import { connectionOf } from '../connections/connections';
import { HealthRegistry } from '../health/health';

/**
 * Work to finish before the service stops accepting requests, e.g. to stop consuming and settle messages in
 * process.
 */
interface DrainHook {
  name: string;
  drain(): Promise<void>;
}

/** The drain hooks of this process. They run concurrently, after the grace period and before HTTP closes. */
@Injectable()
export class ShutdownRegistry {
  private readonly hooks: DrainHook[] = [];

  addDrainHook(hook: DrainHook): void {
    this.hooks.push(hook);
  }

  get drainHooks(): readonly DrainHook[] {
    return this.hooks;
  }
}

const POLL_MS = 25;
/** During a stop: time after which a connection that has never sent a byte is closed. */
const SILENT_LIMIT_MS = 500;
/** During a stop: time after which a connection without a complete request is closed. */
const UNFINISHED_HEADERS_LIMIT_MS = 2_000;

/** Tracks the open connections of a server. Create it before the server listens. */
export class OpenConnections {
  private readonly sockets = new Set<Socket>();

  constructor(private readonly server: Server) {
    server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
  }

  /**
   * Stops accepting, lets every response in flight finish, and closes connections as they become idle. Closes
   * the rest after `limitMs`. Returns whether everything finished in time. A bare `close()` would wait for
   * keep-alive connections that become idle after it (up to 74 s).
   */
  async close(limitMs: number): Promise<boolean> {
    const startedMs = SYSTEM_CLOCK.monotonicMs();
    let isClosed = false;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve())).then(
      () => (isClosed = true),
    );
    for (;;) {
      await Promise.race([closed, sleep(POLL_MS)]);
      if (isClosed) return true;
      const elapsedMs = SYSTEM_CLOCK.monotonicMs() - startedMs;
      if (elapsedMs >= limitMs) break;
      this.server.closeIdleConnections();
      if (elapsedMs >= SILENT_LIMIT_MS) this.closeSilent();
      if (elapsedMs >= UNFINISHED_HEADERS_LIMIT_MS) this.closeWithoutRequest();
    }
    this.server.closeAllConnections();
    return false;
  }

  /** Closes connections that have not sent a byte, which Node does not count as idle. */
  private closeSilent(): void {
    for (const socket of this.sockets) if (socket.bytesRead === 0) socket.destroy();
  }

  /** Closes connections without a complete request, which Node does not count as idle either. */
  private closeWithoutRequest(): void {
    for (const socket of this.sockets) if (connectionOf(socket)?.inFlight === 0) socket.destroy();
  }
}

/** Time limits of the steps of a stop, in milliseconds. */
interface StopTiming {
  graceMs: number;
  timeoutMs: number;
}

/**
 * Stops a service without losing work in flight. Steps: not ready → grace period → drain hooks → stop
 * accepting → responses in flight → module shutdown hooks (which close the database and the broker, last). It
 * stops waiting `timeoutMs` after the grace period.
 */
export async function stopService(
  app: NestFastifyApplication,
  connections: OpenConnections,
  { graceMs, timeoutMs }: StopTiming,
): Promise<void> {
  const logger = new Logger('Shutdown');
  app.get(HealthRegistry).markShuttingDown();
  logger.log(`not ready; stopping in ${graceMs} ms`);
  await sleep(graceMs);
  const deadlineMs = SYSTEM_CLOCK.monotonicMs() + timeoutMs;
  await Promise.all(app.get(ShutdownRegistry).drainHooks.map((hook) => drain(hook, timeoutMs, logger)));
  // Responses in flight get at least 1 s, however long draining took.
  const remainingMs = Math.max(deadlineMs - SYSTEM_CLOCK.monotonicMs(), 1_000);
  const finished = await connections.close(remainingMs);
  if (!finished) logger.warn('requests were still in flight after the limit; their connections were closed');
  await app.close();
}

async function drain(hook: DrainHook, limitMs: number, logger: Logger): Promise<void> {
  try {
    await withTimeout(hook.drain(), limitMs, () => new Error(`took over ${limitMs} ms`));
  } catch (error) {
    // The other steps must still run. Undrained messages are redelivered, and open transactions rolled back.
    logger.error(error, `Drain ${hook.name}`);
  }
}
