import { mkdirSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { ApiContract, type Exchange } from '#platform/api-contract.ts';
import { apiDocument, workspaceFile } from './documents';

interface Traffic {
  readonly contract: ApiContract;
  readonly seen: Map<string, number>;
}

const traffic = new Map<string, Traffic>();
const violations: string[] = [];
let permitted = false;

/**
 * Compares every further response of a server with the committed document of its service. A violation fails
 * the running test. Call it before the first request.
 * @param basePath prefix that the service is configured to put before every route; documents omit it
 */
export function watchTraffic(service: string, server: Server, basePath = ''): void {
  const { contract, seen } = trafficOf(service);
  server.prependListener('request', (request, response) => {
    recordExchange(request, response, (exchange) => {
      const verdict = contract.judge(withoutBase(exchange, basePath));
      const key = verdict.seen ?? 'no operation';
      seen.set(key, (seen.get(key) ?? 0) + 1);
      const { method, target, status, body } = exchange;
      if (status === 500 && !permitted) violations.push(`${method} ${target} → 500: a fault\n    ${body}`);
      for (const violation of verdict.violations)
        violations.push(`${method} ${target} → ${String(status)}: ${violation}\n    ${body.slice(0, 500)}`);
    });
  });
}

/**
 * Permits 500 responses and logged defects until the test ends. For tests that break a dependency of a
 * service.
 */
export function permitFaults(): void {
  permitted = true;
}

/** Returns true from `permitFaults` until the test ends. */
export function faultsArePermitted(): boolean {
  return permitted;
}

/** Reverts `permitFaults`. */
export function forbidFaults(): void {
  permitted = false;
}

/** Returns and clears the violations. */
export function takeViolations(): string[] {
  return violations.splice(0);
}

/** Writes the responses that this test file received. The global teardown adds up all files. */
export function writeSeenResponses(testFile: string): void {
  for (const [service, { seen }] of traffic) {
    const folder = workspaceFile('test-results', 'api-traffic', service);
    mkdirSync(folder, { recursive: true });
    const name = testFile.replace(/[^\w.-]+/g, '_');
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(Object.fromEntries(seen)));
  }
}

function trafficOf(service: string): Traffic {
  const known = traffic.get(service);
  if (known !== undefined) return known;
  const fresh = { contract: new ApiContract(apiDocument(service)), seen: new Map<string, number>() };
  traffic.set(service, fresh);
  return fresh;
}

function withoutBase(exchange: Exchange, basePath: string): Exchange {
  const { target } = exchange;
  if (basePath === '' || /^\/(health|docs|openapi\.json)/i.test(target)) return exchange;
  // Outside its base path a service has no routes, even if the document has that path.
  const relative = target.startsWith(basePath) ? target.slice(basePath.length) : `/nothing${target}`;
  return { ...exchange, target: relative };
}

/**
 * Calls `done` when the whole response has been handed to the operating system. Never calls it if the
 * connection breaks before.
 */
function recordExchange(
  request: IncomingMessage,
  response: ServerResponse,
  done: (exchange: Exchange) => void,
): void {
  // Read now, because the server may rewrite the target.
  const { method = 'GET', url: target = '/' } = request;
  const sent = recordRequestBody(request);
  const responded = recordResponse(response);
  response.once('finish', () => {
    const { headers, body } = responded();
    const requestBody = sent();
    const { statusCode: status } = response;
    done({ method, target, requestHeaders: request.headers, requestBody, status, headers, body });
  });
}

/** Intercepts `emit`, because an extra `data` listener would take the data from the server. */
function recordRequestBody(request: IncomingMessage): () => string {
  const chunks: Buffer[] = [];
  const emit = request.emit.bind(request);
  request.emit = ((event: string, ...args: unknown[]) => {
    if (event === 'data') chunks.push(Buffer.from(args[0] as Buffer));
    return emit(event, ...args);
  }) as typeof request.emit;
  return () => Buffer.concat(chunks).toString('utf8');
}

function recordResponse(response: ServerResponse): () => Pick<Exchange, 'headers' | 'body'> {
  const chunks: Buffer[] = [];
  const headers: OutgoingHttpHeaders = {};
  const keep = (chunk: unknown): void => {
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk as string));
  };
  const write = response.write.bind(response) as (...args: unknown[]) => boolean;
  const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse;
  const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
  response.write = ((...args: unknown[]) => {
    keep(args[0]);
    return write(...args);
  }) as typeof response.write;
  response.end = ((...args: unknown[]) => {
    keep(args[0]);
    return end(...args);
  }) as typeof response.end;
  // getHeaders() does not return headers that are passed to writeHead.
  response.writeHead = (...args: unknown[]) => {
    const given = args.at(-1);
    if (typeof given === 'object' && given !== null && !Array.isArray(given))
      Object.assign(headers, lowerCase({ ...given }));
    return writeHead(...args);
  };
  return () => ({
    headers: { ...lowerCase(response.getHeaders()), ...headers },
    body: Buffer.concat(chunks).toString('utf8'),
  });
}

function lowerCase(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
