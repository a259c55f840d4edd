import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { SECOND_MS } from '@platform/time';
import { PROBLEM_JSON, defaultProblem, renderProblem } from '../problems/problem';
import { newTraceId } from '../tracing/trace-context';

/**
 * Time that a client has to read the response. Half-open sockets are allowed, so without a limit the client
 * could keep its half open for ever.
 */
const LINGER_MS = SECOND_MS;
const REQUEST_TIMEOUT = 408;

/**
 * Writes a problem directly to a socket and closes it. For a socket without a request, or whose request will
 * never be complete.
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
  // Stops reading, so that the rest of a body cannot complete a refused request.
  if (status === REQUEST_TIMEOUT) socket.pause();
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
