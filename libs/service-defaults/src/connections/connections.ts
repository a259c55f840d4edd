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
  /** Maximum requests in flight on one connection. Clients that do not pipeline have one. */
  readonly inFlight: number;
  /**
   * Time after which an unread response closes its connection, and over which the rate of a body is measured.
   */
  readonly stallMs: number;
  /** Maximum bytes of responses that are not written yet, over all connections. */
  readonly waitingBytes: number;
  /** Maximum memory in bytes of incomplete bodies, over all connections. */
  readonly bodyBytes: number;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const CHECK_INTERVAL_MS = SECOND_MS;
const TOO_MANY_REQUESTS = 429;

const connections = new WeakMap<Socket, Connection>();

/** Returns the state of a socket's connection; undefined for a socket that no service's server accepted. */
export function connectionOf(socket: Socket): Connection | undefined {
  return connections.get(socket);
}

/**
 * The open connections of a service. Limits the load of each connection, and closes those without progress.
 */
export class Connections {
  private readonly open = new Set<Connection>();
  /** Bytes of responses that are not written yet. */
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
      'Bytes of memory of request bodies that are not complete yet.',
      [],
      () => [{ labels: {}, value: this.bodies.bytes }],
    );
    metrics.sampledGauge('http_connections_open', 'Open connections of clients.', [], () => [
      { labels: {}, value: this.open.size },
    ]);
  }

  /** Creates a server that passes requests within the limits to `handler`. */
  createServer(options: ServerOptions, handler: Handler): Server {
    const watched = { ...options, IncomingMessage: ArrivingRequest };
    const server = createServer(watched, (request, response) => {
      const connection = connections.get(request.socket) ?? this.accept(request.socket);
      if (connection.inFlight < this.limits.inFlight && !connection.isEnding) {
        connection.begin(request);
        this.bodies.watch(request, connection);
        // Runs before Node's own listener, which would drop the rest of a body uncounted.
        response.prependListener('finish', () => {
          connection.end();
          request.arriving?.dropRest();
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
    // 'close' is emitted after the last connection has ended, so connections are also checked while the
    // service stops.
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
   * Responds to the first excess request with 429 and closes the connection after that. Drops later requests.
   * Reading stops, so that dropping costs almost nothing.
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
      // An unread response leaves no room for another one, and neither does a body that continues after its
      // response: these sockets are destroyed.
      if (fault === 'too-slow' && connection.inFlight > 0) refuseConnection(connection.socket, 408);
      else connection.socket.destroy();
    }
  }
}

/** Responds with the problem of `status` and closes the connection. */
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
