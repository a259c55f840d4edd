import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable, Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { sleep, SYSTEM_CLOCK, withTimeout } from '@platform/time';
import { connectionOf } from '../connections/connections';
import { HealthRegistry } from '../health/health';

/**
 * Something to finish before the service stops accepting requests, e.g. stop consuming and settle messages in
 * flight.
 */
interface DrainHook {
  name: string;
  drain(): Promise<void>;
}

/** The drain hooks of this process, run together after the grace period and before HTTP closes. */
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
/** How long a connection that never sent a byte may still do so. */
const SILENT_LIMIT_MS = 500;
/** How long a connection without a complete request may still complete its headers. */
const UNFINISHED_HEADERS_LIMIT_MS = 2_000;

/** The open connections of a server; must watch from before it listens. */
export class OpenConnections {
  private readonly sockets = new Set<Socket>();

  constructor(private readonly server: Server) {
    server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
  }

  /**
   * Stops accepting, lets every answer in flight finish, and ends connections as they fall idle. After
   * `limitMs` it ends the rest. Returns whether everything finished by itself. A bare `close()` would wait
   * for keep-alive connections that fall idle after it (seen: 74 s).
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
      if (elapsedMs >= SILENT_LIMIT_MS) this.endSilent();
      if (elapsedMs >= UNFINISHED_HEADERS_LIMIT_MS) this.endWithoutRequest();
    }
    this.server.closeAllConnections();
    return false;
  }

  /** Node does not count a connection as idle before its first request. */
  private endSilent(): void {
    for (const socket of this.sockets) if (socket.bytesRead === 0) socket.destroy();
  }

  /** Nor after part of its headers. */
  private endWithoutRequest(): void {
    for (const socket of this.sockets) if (connectionOf(socket)?.inFlight === 0) socket.destroy();
  }
}

/** How long the steps of a stop may take, in milliseconds. */
interface StopTiming {
  graceMs: number;
  timeoutMs: number;
}

/**
 * Stops a service without losing what it has begun: not ready → grace → drain hooks → stop accepting →
 * answers in flight → module shutdown hooks (database and broker close there, last). Past `timeoutMs` after
 * the grace it stops waiting.
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
  // However long draining took, answers in flight get a moment.
  const remainingMs = Math.max(deadlineMs - SYSTEM_CLOCK.monotonicMs(), 1_000);
  const finished = await connections.close(remainingMs);
  if (!finished) logger.warn('requests were still in flight after the limit; their connections were closed');
  await app.close();
}

async function drain(hook: DrainHook, limitMs: number, logger: Logger): Promise<void> {
  try {
    await withTimeout(hook.drain(), limitMs, () => new Error(`took over ${limitMs} ms`));
  } catch (error) {
    // The other steps still have to happen: what is not drained is redelivered or rolled back.
    logger.error(error, `Drain ${hook.name}`);
  }
}
