import { currentTrace, newTrace, traceHeaders, withTrace } from './trace-context';
import type { SpanAttributes, TraceContext, TraceHeaders } from './trace-context';

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

/**
 * The options of a span. Names and attributes follow OpenTelemetry's semantic conventions where these exist.
 */
export interface SpanOptions {
  /** Name of low cardinality, without identifiers. */
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes?: SpanAttributes;
  /** The parent: the current trace unless given; null starts a new trace. */
  readonly parent?: TraceContext | null | undefined;
  /** Related traces. */
  readonly links?: readonly TraceContext[];
}

export interface SpanRecorder {
  /** Opens a span under `parent`, in its trace. */
  open(parent: TraceContext, options: SpanOptions): TraceContext;
}

/** One recorder per process. Null means that nothing is recorded and trace ids are passed on unchanged. */
let recorder: SpanRecorder | null = null;

/** Sets the recorder of spans; null stops recording. */
export function recordSpansWith(next: SpanRecorder | null): void {
  recorder = next;
}

export function isRecordingSpans(): boolean {
  return recorder !== null;
}

/**
 * Opens a span and returns the trace to work in. The caller must end `trace.span`. Without a recorder,
 * returns the parent itself.
 */
export function openSpan(options: SpanOptions): TraceContext {
  const parent = (options.parent === undefined ? currentTrace() : options.parent) ?? newTrace();
  return recorder === null ? parent : recorder.open(parent, options);
}

/** Runs `work` in a new span, which fails if the work does. Rethrows the work's error. */
export async function inSpan<T>(options: SpanOptions, work: (trace: TraceContext) => Promise<T>): Promise<T> {
  const trace = openSpan(options);
  const { span } = recorder === null ? { span: undefined } : trace;
  try {
    return await withTrace(trace, () => work(trace));
  } catch (error) {
    span?.fail(error instanceof Error ? error.name : typeof error);
    throw error;
  } finally {
    span?.end();
  }
}

/**
 * `fetch` for requests to the platform's services, for clients that accept a `fetch`. Each request carries
 * the current trace and gets its own span. A request outside a trace, such as a poll, carries a new unsampled
 * trace: its logs are correlated, but its spans would only fill the collector.
 */
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

/**
 * Sends the request with the trace's headers added. Uses `globalThis.fetch` on each call, so that it can be
 * replaced.
 */
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

/**
 * Returns the span of a client request. It omits the path and the query, which contain personal data and may
 * hold tokens.
 */
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
