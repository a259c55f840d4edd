import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { problems } from '../problems/problem';
import { refuseConnection } from './refuse-connection';
import type { Refusals } from './refusals';

/** A part is a chunk, or what arrived at once. Each costs some 3 µs, however short it is. */
const FREE_PARTS = 256;
/**
 * What a body must have for each further part. Clients that write their JSON bit by bit have some hundred
 * bytes.
 */
const BYTES_PER_PART = 64;
/** Memory that a part takes beside its bytes. */
const PART_OVERHEAD_BYTES = 512;

const BAD_REQUEST = 400;

/** What a body must know of its connection. */
interface BodyConnection {
  readonly socket: Socket;
  readonly inFlight: number;
  isEnding: boolean;
}

/** A request whose body is looked at part by part, before anybody collects it. */
export class ArrivingRequest extends IncomingMessage {
  /** Null: there is none, or the request was refused. */
  arriving: ArrivingBody | null = null;

  override push(part: Buffer | null): boolean {
    const { arriving } = this;
    if (part === null) {
      // A body with gaps must not become a request.
      if (arriving?.isEnded === true) return true;
      arriving?.release();
      // What is dropped fills no buffer.
    } else if (arriving?.admits(part.length) !== true) return true;
    return super.push(part);
  }
}

/**
 * Bounds what bodies cost until they are complete: the memory of all of them together, and the number of
 * parts of each.
 */
export class ArrivingBodies {
  /** The bodies that take memory, the oldest first. */
  readonly held = new Set<ArrivingBody>();
  /** Bytes of memory that incomplete bodies take. */
  bytes = 0;

  /** @param limitBytes for all bodies together */
  constructor(
    private readonly limitBytes: number,
    readonly refusals: Refusals,
  ) {}

  watch(request: ArrivingRequest, connection: BodyConnection): void {
    const { headers } = request;
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return;
    // NaN for chunks: nobody knows how long that body is until it has ended.
    const length = Number(headers['content-length']);
    request.arriving = new ArrivingBody(this, request, connection, length);
  }

  /**
   * The bodies that have been arriving for the longest time make room: slow senders cannot keep others out.
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
  /** It has been refused, and its connection ends. */
  isEnded = false;
  /** Nobody reads the rest. */
  private isDropped: boolean;
  private parts = 0;
  private bytes = 0;
  private heldBytes = 0;

  constructor(
    private readonly all: ArrivingBodies,
    private readonly request: ArrivingRequest,
    private readonly connection: BodyConnection,
    /** In bytes; NaN: unknown. */
    private readonly length: number,
  ) {
    this.isDropped = request.method === 'GET' || request.method === 'HEAD';
  }

  /** Whether a part of so many bytes is to be kept. */
  admits(bytes: number): boolean {
    if (this.isEnded) return false;
    this.parts += 1;
    this.bytes += bytes;
    if (this.parts > FREE_PARTS + this.bytes / BYTES_PER_PART) this.end();
    // The last part completes the body at once. Most bodies have only that one.
    if (!this.isDropped && this.bytes !== this.length) this.hold(bytes + PART_OVERHEAD_BYTES);
    // Making room may have refused this one.
    return !this.isDropped;
  }

  /** It takes no memory any more: it is complete, refused, answered, or its connection has closed. */
  release(): void {
    if (this.heldBytes === 0) return;
    this.all.bytes -= this.heldBytes;
    this.heldBytes = 0;
    this.all.held.delete(this);
  }

  /** What arrives from now on is counted, but not kept. */
  drop(): void {
    this.release();
    this.isDropped = true;
  }

  /** The request has its response. */
  outlive(): void {
    if (this.request.complete) return;
    this.drop();
    // Otherwise Node would drop the rest by itself, where nobody can count.
    this.request.resume();
  }

  /** Answers 503. The client may go on sending until it reads that. */
  refuse(): void {
    this.drop();
    this.all.refusals.count('bodies-arriving');
    // Whoever collects the body then forgets what it has, and responds.
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

  private end(): void {
    this.drop();
    this.isEnded = true;
    this.all.refusals.count('body-in-small-parts');
    const { connection } = this;
    connection.isEnding = true;
    connection.socket.pause();
    if (connection.inFlight > 0) refuseConnection(connection.socket, BAD_REQUEST);
    else connection.socket.destroy();
  }
}
