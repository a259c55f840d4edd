import { inSpan } from './spans';
import type { SpanOptions } from './spans';
import { currentTrace, newTrace, traceHeaders } from './trace-context';
import type { TraceHeaders } from './trace-context';

/** `fetch` for requests to services of the platform: they carry the current trace, and each is a span of its own. A request that
 *  nobody waits for, like a poll, carries a trace of its own that is not sampled: its logs belong together, its spans would only fill
 *  the collector. Pass it to clients that take a `fetch`. */
export const tracedFetch: typeof globalThis.fetch = async (input, init) => {
  if (currentTrace() === undefined) return send(input, init, traceHeaders(newTrace()));
  const { method, url } = requestOf(input, init);
  return inSpan(clientSpan(method, url), async (trace) => {
    const response = await send(input, init, traceHeaders(trace));
    trace.span?.set({ 'http.response.status_code': response.status });
    if (response.status >= 400) trace.span?.fail(String(response.status));
    return response;
  });
};

type Input = Parameters<typeof globalThis.fetch>[0];
type Init = Parameters<typeof globalThis.fetch>[1];

/** Nothing is changed but the headers; the global is asked for each time, so that it can be replaced. */
function send(input: Input, init: Init, trace: TraceHeaders): Promise<Response> {
  const given = init?.headers ?? (input instanceof Request ? input.headers : undefined);
  const headers = new Headers(given);
  for (const [name, value] of Object.entries(trace)) headers.set(name, value as string);
  return globalThis.fetch(input, { ...init, headers });
}

function requestOf(input: Input, init: Init): { method: string; url: URL | null } {
  const given = input instanceof Request ? input : null;
  const url = input instanceof Request ? input.url : input.toString();
  return {
    method: (init?.method ?? given?.method ?? 'GET').toUpperCase(),
    url: URL.canParse(url) ? new URL(url) : null,
  };
}

/** Where the request goes, without path and query: those name people and may hold tokens. */
function clientSpan(method: string, url: URL | null): SpanOptions {
  return {
    name: method,
    kind: 'client',
    attributes: {
      'http.request.method': method,
      'server.address': url?.hostname,
      'server.port': url === null ? undefined : portOf(url),
    },
  };
}

function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}
