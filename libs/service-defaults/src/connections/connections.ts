import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import type { Metrics } from '../metrics/metrics';
import { PROBLEM_JSON, defaultProblem, renderProblem } from '../problems/problem';
import { newTraceId } from '../tracing/trace-context';
import { ArrivingBodies, ArrivingRequest } from './arriving-bodies';
import { Connection } from './connection';
import { refuseConnection } from './refuse-connection';
import type { Refusals } from './refusals';

export interface ConnectionLimits {
  /** Requests of one connection that may be in flight. HTTP clients that do not pipeline have one. */
  readonly inFlight: number;
  /**
   * How long a response may wait without any of it being read, and over which the rate of a body is measured.
   */
  readonly stallMs: number;
  /** Bytes of responses that may wait to be written, of all connections together. */
  readonly waitingBytes: number;
  /** Bytes of memory that incomplete bodies may take, of all connections together. */
  readonly bodyBytes: number;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const CHECK_INTERVAL_MS = SECOND_MS;
const TOO_MANY_REQUESTS = 429;

const connections = new WeakMap<Socket, Connection>();

/** What is known of a socket; undefined for one that no service's server accepted. */
export function connectionOf(socket: Socket): Connection | undefined {
  return connections.get(socket);
}

/**
 * The open connections of a service: bounds what one of them may keep busy, and ends those that do not move.
 */
export class Connections {
  private readonly open = new Set<Connection>();
  /** Bytes of responses that wait to be written. */
  waitingBytes = 0;
  private readonly bodies: ArrivingBodies;

  constructor(
    readonly limits: ConnectionLimits,
    readonly refusals: Refusals,
  ) {
    this.bodies = new ArrivingBodies(limits.bodyBytes, refusals);
  }

  reportTo(metrics: Metrics): void {
    metrics.sampledGauge(
      'http_response_bytes_waiting',
      'Bytes of responses that their clients have not read yet.',
      [],
      () => [{ labels: {}, value: this.waitingBytes }],
    );
    metrics.sampledGauge(
      'http_request_body_bytes_arriving',
      'Bytes of memory that request bodies take which are not complete yet.',
      [],
      () => [{ labels: {}, value: this.bodies.bytes }],
    );
    metrics.sampledGauge('http_connections_open', 'Open connections of clients.', [], () => [
      { labels: {}, value: this.open.size },
    ]);
  }

  /** A server that hands requests within the limits on to `handler`. */
  createServer(options: ServerOptions, handler: Handler): Server {
    const watched = { ...options, IncomingMessage: ArrivingRequest };
    const server = createServer(watched, (request, response) => {
      const connection = connections.get(request.socket) ?? this.accept(request.socket);
      if (connection.inFlight < this.limits.inFlight && !connection.isEnding) {
        connection.begin(request);
        this.bodies.watch(request, connection);
        // Before Node's own listener, which would drop the rest of a body uncounted.
        response.prependListener('finish', () => {
          connection.end();
          request.arriving?.outlive();
        });
        handler(request, response);
      } else this.refuse(connection, request, response);
    });
    server.on('connection', (socket: Socket) => this.accept(socket));
    server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
      this.refusals.count('expectation');
      respond(response, 417);
    });
    let timer: NodeJS.Timeout | undefined;
    server.on('listening', () => {
      timer = setInterval(() => this.check(), CHECK_INTERVAL_MS).unref();
    });
    // 'close' comes after the last connection has ended: until then they are watched, while the service stops
    // too.
    server.on('close', () => clearInterval(timer));
    return server;
  }

  private accept(socket: Socket): Connection {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const connection = new Connection(socket);
    connections.set(socket, connection);
    this.open.add(connection);
    socket.once('close', () => {
      this.open.delete(connection);
      connection.isClosed = true;
      this.waitingBytes -= connection.waitingBytes;
      connection.request?.arriving?.release();
    });
    return connection;
  }

  /**
   * Answers the first request too many and closes after it; drops what follows. Reading stops, so that
   * dropping costs next to nothing.
   */
  private refuse(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
    if (!connection.isEnding) {
      connection.isEnding = true;
      this.refusals.count('too-many-in-flight');
      response.setHeader('retry-after', '1');
      respond(response, TOO_MANY_REQUESTS);
    }
    request.socket.pause();
  }

  private check(): void {
    const nowMs = SYSTEM_CLOCK.monotonicMs();
    for (const connection of this.open) {
      const fault = connection.findFault(nowMs, this.limits.stallMs);
      if (fault === null) continue;
      this.refusals.count(fault);
      // A response that nobody reads leaves no room for another one; nor does a body that goes on after its
      // response.
      if (fault === 'too-slow' && connection.inFlight > 0) refuseConnection(connection.socket, 408);
      else connection.socket.destroy();
    }
  }
}

/** Answers with the problem of `status` and closes the connection. */
function respond(response: ServerResponse, status: number): void {
  const body = renderProblem(defaultProblem(status), '/', newTraceId());
  response
    .writeHead(status, {
      'content-type': PROBLEM_JSON,
      'x-content-type-options': 'nosniff',
      'content-length': Buffer.byteLength(body),
      connection: 'close',
    })
    .end(body);
}
