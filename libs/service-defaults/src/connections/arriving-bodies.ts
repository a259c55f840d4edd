import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { problems } from '../problems/problem';
import { refuseConnection } from './refuse-connection';
import type { Refusals } from './refusals';

/**
 * Number of parts that a body of any size may have. A part is a chunk, or the bytes of one read. Each costs
 * about 3 µs, however short.
 */
const FREE_PARTS = 256;
/**
 * Minimum bytes of a body per further part. Clients that write their JSON piecemeal send about a hundred
 * bytes per part.
 */
const BYTES_PER_PART = 64;
/** Memory overhead of a buffered part, in bytes. */
const PART_OVERHEAD_BYTES = 512;

const BAD_REQUEST = 400;

/** The properties of a connection that a body uses. */
interface BodyConnection {
  readonly socket: Socket;
  readonly inFlight: number;
  isEnding: boolean;
}

/** A request whose body is checked part by part, before it is buffered. */
export class ArrivingRequest extends IncomingMessage {
  /** The arriving body; null if the request has none or was refused. */
  arriving: ArrivingBody | null = null;

  override push(part: Buffer | null): boolean {
    const { arriving } = this;
    if (part === null) {
      // The body was refused, so its end must not complete the request.
      if (arriving?.isClosing === true) return true;
      arriving?.release();
      // Dropped parts are not buffered.
    } else if (arriving?.countPart(part.length) !== true) return true;
    return super.push(part);
  }
}

/**
 * Limits the cost of incomplete bodies: the memory of all of them together, and the number of parts of each.
 */
export class ArrivingBodies {
  /** The bodies that hold memory, oldest first. */
  readonly held = new Set<ArrivingBody>();
  /** Memory in bytes of all incomplete bodies. */
  bytes = 0;

  /** @param limitBytes maximum memory of all bodies together */
  constructor(
    private readonly limitBytes: number,
    readonly refusals: Refusals,
  ) {}

  watch(request: ArrivingRequest, connection: BodyConnection): void {
    const { headers } = request;
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return;
    // NaN for a chunked body, whose length is unknown until its end.
    const length = Number(headers['content-length']);
    request.arriving = new ArrivingBody(this, request, connection, length);
  }

  /**
   * Refuses the oldest bodies until the rest is within the limit, so that slow senders cannot keep others
   * out.
   */
  makeRoom(): void {
    if (this.bytes <= this.limitBytes) return;
    for (const oldest of this.held) {
      oldest.refuse();
      if (this.bytes <= this.limitBytes) return;
    }
  }
}

/** The body of one request, until it is complete. */
class ArrivingBody {
  /** Whether the body was refused for its small parts, so that its connection is closing. */
  isClosing = false;
  /** Whether further parts are dropped. */
  private isDropped: boolean;
  private parts = 0;
  private bytes = 0;
  private heldBytes = 0;

  constructor(
    private readonly all: ArrivingBodies,
    private readonly request: ArrivingRequest,
    private readonly connection: BodyConnection,
    /** Declared length in bytes; NaN if unknown. */
    private readonly length: number,
  ) {
    this.isDropped = request.method === 'GET' || request.method === 'HEAD';
  }

  /** Counts a part of `bytes` bytes and returns whether to buffer it. */
  countPart(bytes: number): boolean {
    if (this.isClosing) return false;
    this.parts += 1;
    this.bytes += bytes;
    if (this.parts > FREE_PARTS + this.bytes / BYTES_PER_PART) this.closeConnection();
    // The last part completes the body at once, so its memory is not counted. Most bodies have only one part.
    if (!this.isDropped && this.bytes !== this.length) this.hold(bytes + PART_OVERHEAD_BYTES);
    // `makeRoom` may have refused this body.
    return !this.isDropped;
  }

  /**
   * Subtracts the body from the memory of all bodies. Called when the body is complete, refused or responded
   * to, or its connection has closed.
   */
  release(): void {
    if (this.heldBytes === 0) return;
    this.all.bytes -= this.heldBytes;
    this.heldBytes = 0;
    this.all.held.delete(this);
  }

  /** Drops the parts that arrive from now on; they are still counted. */
  drop(): void {
    this.release();
    this.isDropped = true;
  }

  /** Drops the rest of the body, once the response has been written. */
  dropRest(): void {
    if (this.request.complete) return;
    this.drop();
    // Otherwise Node would drop the rest itself, uncounted.
    this.request.resume();
  }

  /** Responds with 503. The client may keep sending until it reads the response. */
  refuse(): void {
    this.drop();
    this.all.refusals.count('bodies-arriving');
    // The error makes the body's reader discard its buffer and respond.
    if (this.request.listenerCount('data') > 0)
      this.request.emit('error', problems.serviceUnavailable('Too many request bodies are arriving.'));
    else this.connection.socket.destroy();
  }

  private hold(bytes: number): void {
    if (this.heldBytes === 0) this.all.held.add(this);
    this.heldBytes += bytes;
    this.all.bytes += bytes;
    this.all.makeRoom();
  }

  private closeConnection(): void {
    this.drop();
    this.isClosing = true;
    this.all.refusals.count('body-in-small-parts');
    const { connection } = this;
    connection.isEnding = true;
    connection.socket.pause();
    if (connection.inFlight > 0) refuseConnection(connection.socket, BAD_REQUEST);
    else connection.socket.destroy();
  }
}
