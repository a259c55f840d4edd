import type { Socket } from 'node:net';
import type { ArrivingRequest } from './arriving-bodies';

/** The least that a body must arrive with, on average over a window of the stall limit. */
const MIN_BODY_BYTES_PER_SECOND = 500;

/** What is wrong with a connection. */
export type ConnectionFault = 'too-slow' | 'response-not-read';

/** What a service knows of one open connection. */
export class Connection {
  /** Requests whose response has not been written completely. */
  inFlight = 0;
  /** Bytes of responses that wait to be written. */
  waitingBytes = 0;
  /** It has had its last request. */
  isEnding = false;
  isClosed = false;
  /** The newest request, until its body has arrived. */
  request: ArrivingRequest | null = null;
  /** Counts responses, and parts of large ones, that have been written to the end. */
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
    // An idle connection does not keep its last request in memory.
    if (this.request?.complete === true) this.request = null;
  }

  /** A part of a large response has been written. */
  notePart(): void {
    this.writes += 1;
  }

  /**
   * Looks at the progress of both directions; called about once a second.
   * @param limitMs how long a write may go without progress, and over which the rate of a body is measured
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
