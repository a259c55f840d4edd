import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from '../logging/log-safe';
import { PROBLEM_JSON, problems, renderProblem } from '../problems/problem';
import type { Connection } from './connection';
import { connectionOf } from './connections';
import type { Connections } from './connections';

declare module 'fastify' {
  interface FastifyReply {
    /** Bytes of this response that count as not written yet. */
    waitingBytes: number;
  }
}

/**
 * Responses up to this size may use the reserve, so that errors and small responses still pass while large
 * ones are refused.
 */
const SMALL_BYTES = 16 * 1_024;
const RESERVE = 1.25;
/** Share of the limit that one connection may use. */
const CONNECTION_SHARE = 0.25;
/** Responses above this size are written in parts, so that a slow reader's progress is visible. */
const WHOLE_BYTES = 256 * 1_024;
const PART_BYTES = 64 * 1_024;

/**
 * Limits the memory of responses that clients have not read yet. A response that does not fit becomes a 503
 * with Retry-After.
 */
export class WaitingResponses {
  constructor(private readonly connections: Connections) {}

  /** Adds the hooks. Call it before any route is added. */
  track(instance: FastifyInstance): void {
    instance.decorateReply('waitingBytes', 0);
    instance.addHook('onResponse', (request, reply, done) => {
      const connection = connectionOf(request.raw.socket);
      if (connection !== undefined) this.note(connection, reply, 0);
      done();
    });
  }

  /** Returns the payload to send instead of `payload`: the same one, its parts, or a refusal. */
  admit(request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
    if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload;
    if (payload.length === 0 || request.method === 'HEAD') return payload;
    const connection = connectionOf(request.raw.socket);
    // Fastify's inject() has no socket, so no client to wait for.
    if (connection === undefined) return payload;
    const bytes = payload.length <= SMALL_BYTES ? payload.length : Buffer.byteLength(payload);
    if (!this.hasRoom(connection, reply, bytes)) return this.refuse(request, reply);
    this.note(connection, reply, bytes);
    return bytes <= WHOLE_BYTES ? payload : asStream(reply, connection, payload);
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

/**
 * Returns a large response as a stream of parts. Each is read only after the previous one has been written.
 */
function asStream(reply: FastifyReply, connection: Connection, payload: string | Buffer): Readable {
  // Converted to bytes, so that the string can be garbage-collected.
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
