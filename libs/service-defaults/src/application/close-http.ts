import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { SYSTEM_CLOCK, sleep } from '@platform/time';

const POLL_MS = 25;
/** How long a connection that never sent a byte may still do so. */
const SILENT_LIMIT_MS = 500;

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
   * Stops accepting, lets every answer in flight finish, and ends connections as they fall idle. After `limitMs` it ends
   * the rest. Returns whether everything finished by itself. A bare `close()` would wait for keep-alive connections that
   * fall idle after it (seen: 74 s).
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
    }
    this.server.closeAllConnections();
    return false;
  }

  /** Node does not count a connection as idle before its first request. */
  private endSilent(): void {
    for (const socket of this.sockets) if (socket.bytesRead === 0) socket.destroy();
  }
}
