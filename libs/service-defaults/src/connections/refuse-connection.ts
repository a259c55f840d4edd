import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { SECOND_MS } from '@platform/time';
import { PROBLEM_JSON, defaultProblem, renderProblem } from '../problems/problem';
import { newTraceId } from '../tracing/trace-context';

/**
 * How long a client has to read why it was refused. Sockets are half-open: without a limit it could keep its
 * own half for good.
 */
const LINGER_MS = SECOND_MS;
const REQUEST_TIMEOUT = 408;

/**
 * Writes a problem straight to a socket that has no request, or one that will never be complete, and closes
 * it.
 */
export function refuseConnection(socket: Socket, status: number): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = renderProblem(defaultProblem(status), '/', newTraceId());
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Bad Request'}`,
    `Content-Type: ${PROBLEM_JSON}; charset=utf-8`,
    'X-Content-Type-Options: nosniff',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  // The rest of a body must not complete a request that was refused.
  if (status === REQUEST_TIMEOUT) socket.pause();
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
