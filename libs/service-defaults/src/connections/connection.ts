import type { Socket } from 'node:net';
import type { ArrivingRequest } from './arriving-bodies';

/** Minimum rate of a body, averaged over a window as long as the stall limit. */
const MIN_BODY_BYTES_PER_SECOND = 500;

/** A reason to close a connection. */
export type ConnectionFault = 'too-slow' | 'response-not-read';

/** The state of one open connection. */
export class Connection {
  /** Number of requests whose response has not been completely written. */
  inFlight = 0;
  /** Bytes of responses that are not written yet. */
  waitingBytes = 0;
  /** Whether the connection accepts no further request. */
  isEnding = false;
  isClosed = false;
  /** The latest request, until its body has arrived. */
  request: ArrivingRequest | null = null;
  /** Number of responses, and of parts of large ones, that have been completely written. */
  private writes = 0;
  private seenWrites = 0;
  private unreadSinceMs: number | null = null;
  private bodyWindow: { startedMs: number; bytesRead: number } | null = null;

  constructor(readonly socket: Socket) {}

  begin(request: ArrivingRequest): void {
    this.inFlight += 1;
    this.request = request;
    this.bodyWindow = null;
  }

  end(): void {
    this.inFlight -= 1;
    this.writes += 1;
    // An idle connection must not keep its last request in memory.
    if (this.request?.complete === true) this.request = null;
  }

  /** Notes that a part of a large response has been written, which counts as progress of the connection. */
  notePart(): void {
    this.writes += 1;
  }

  /**
   * Returns the fault of a connection that makes no progress in one direction, else null. Called about once a
   * second.
   * @param limitMs maximum time without progress of a write, and window over which a body's rate is measured
   */
  findFault(nowMs: number, limitMs: number): ConnectionFault | null {
    if (this.isUnread(nowMs, limitMs)) return 'response-not-read';
    return this.isSlowBody(nowMs, limitMs) ? 'too-slow' : null;
  }

  private isUnread(nowMs: number, limitMs: number): boolean {
    if (this.socket.writableLength === 0) {
      this.unreadSinceMs = null;
      return false;
    }
    if (this.unreadSinceMs === null || this.writes !== this.seenWrites) {
      this.unreadSinceMs = nowMs;
      this.seenWrites = this.writes;
    }
    return nowMs - this.unreadSinceMs >= limitMs;
  }

  private isSlowBody(nowMs: number, limitMs: number): boolean {
    if (this.request === null || this.request.complete) return false;
    const { bytesRead } = this.socket;
    this.bodyWindow ??= { startedMs: nowMs, bytesRead };
    const elapsedMs = nowMs - this.bodyWindow.startedMs;
    if (elapsedMs < limitMs) return false;
    const arrived = bytesRead - this.bodyWindow.bytesRead;
    this.bodyWindow = { startedMs: nowMs, bytesRead };
    return arrived < (elapsedMs / 1_000) * MIN_BODY_BYTES_PER_SECOND;
  }
}
