import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from '../logging/log-safe';
import { PROBLEM_JSON, problems, renderProblem } from '../problems/problem';
import type { Connection } from './connection';
import { connectionOf } from './connections';
import type { Connections } from './connections';

declare module 'fastify' {
  interface FastifyReply {
    /** Bytes of this response that count as waiting to be written. */
    waitingBytes: number;
  }
}

/**
 * Up to this size a response may use the reserve: errors and small answers still pass while large ones are
 * refused.
 */
const SMALL_BYTES = 16 * 1_024;
const RESERVE = 1.25;
/** What one connection may have waiting, as a share of the limit. */
const CONNECTION_SHARE = 0.25;
/** Larger responses are written in parts, so that the progress of a slow reader can be seen. */
const WHOLE_BYTES = 256 * 1_024;
const PART_BYTES = 64 * 1_024;

/**
 * Bounds the memory that responses take until their clients have read them. A response that finds no room
 * becomes a 503 with Retry-After.
 */
export class WaitingResponses {
  constructor(private readonly connections: Connections) {}

  /** Must run before any route is added. */
  track(instance: FastifyInstance): void {
    instance.decorateReply('waitingBytes', 0);
    instance.addHook('onResponse', (request, reply, done) => {
      const connection = connectionOf(request.raw.socket);
      if (connection !== undefined) this.note(connection, reply, 0);
      done();
    });
  }

  /** The payload to send in place of `payload`: itself, in parts, or a refusal. */
  admit(request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
    if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload;
    if (payload.length === 0 || request.method === 'HEAD') return payload;
    const connection = connectionOf(request.raw.socket);
    // Without a socket there is nobody to wait for: Fastify's inject().
    if (connection === undefined) return payload;
    const bytes = payload.length <= SMALL_BYTES ? payload.length : Buffer.byteLength(payload);
    if (!this.hasRoom(connection, reply, bytes)) return this.refuse(request, reply);
    this.note(connection, reply, bytes);
    return bytes <= WHOLE_BYTES ? payload : inParts(reply, connection, payload);
  }

  private hasRoom(connection: Connection, { waitingBytes }: FastifyReply, bytes: number): boolean {
    const limit = this.connections.limits.waitingBytes * (bytes <= SMALL_BYTES ? RESERVE : 1);
    const more = bytes - waitingBytes;
    return (
      this.connections.waitingBytes + more <= limit &&
      connection.waitingBytes + more <= limit * CONNECTION_SHARE
    );
  }

  private note(connection: Connection, reply: FastifyReply, bytes: number): void {
    if (connection.isClosed) return;
    const more = bytes - reply.waitingBytes;
    reply.waitingBytes = bytes;
    connection.waitingBytes += more;
    this.connections.waitingBytes += more;
  }

  private refuse(request: FastifyRequest, reply: FastifyReply): string {
    this.connections.refusals.count('responses-waiting');
    const { problem } = problems.serviceUnavailable('Too many responses are waiting to be read.');
    for (const header of ['etag', 'content-length', 'last-modified', 'location']) reply.removeHeader(header);
    void reply
      .code(problem.status)
      .headers({ ...problem.headers, 'cache-control': 'no-store', 'content-type': PROBLEM_JSON });
    return renderProblem(problem, pathOf(request.url), request.id);
  }
}

/** A large response as a stream of parts; each is read only when the one before it has been written. */
function inParts(reply: FastifyReply, connection: Connection, payload: string | Buffer): Readable {
  // As bytes, so that the text can be collected.
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
  reply.header('content-length', String(bytes.length));
  let at = 0;
  return new Readable({
    highWaterMark: PART_BYTES,
    read() {
      connection.notePart();
      this.push(at < bytes.length ? bytes.subarray(at, (at += PART_BYTES)) : null);
    },
  });
}
