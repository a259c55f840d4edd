import { currentTrace, newTrace, traceHeaders, withTrace } from './trace-context';
import type { SpanAttributes, TraceContext, TraceHeaders } from './trace-context';

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

/** What a span tells. Names and attributes follow OpenTelemetry's semantic conventions where there is one. */
export interface SpanOptions {
  /** One of few: no identifiers. */
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes?: SpanAttributes;
  /** What it hangs under: the current trace unless given; null begins a trace. */
  readonly parent?: TraceContext | null | undefined;
  /** Other traces that have to do with it. */
  readonly links?: readonly TraceContext[];
}

/** Where spans go. */
export interface SpanRecorder {
  /** Opens a span under `parent`, in its trace. */
  open(parent: TraceContext, options: SpanOptions): TraceContext;
}

/**
 * One a process, as its traces are; null: nothing is recorded, and identifiers are passed on as they came.
 */
let recorder: SpanRecorder | null = null;

/** Has spans recorded from now on, or with null no longer. */
export function recordSpansWith(next: SpanRecorder | null): void {
  recorder = next;
}

export function isRecordingSpans(): boolean {
  return recorder !== null;
}

/**
 * Opens a span and gives the trace to do its work in; `trace.span` is to be ended. Without a recorder it is
 * the parent itself.
 */
export function openSpan(options: SpanOptions): TraceContext {
  const parent = (options.parent === undefined ? currentTrace() : options.parent) ?? newTrace();
  return recorder === null ? parent : recorder.open(parent, options);
}

/** Does `work` in a span of its own, which fails when the work does. The error goes on to the caller. */
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
 * `fetch` for requests to services of the platform: they carry the current trace, and each is a span of its
 * own. A request that nobody waits for, like a poll, carries a trace of its own that is not sampled: its logs
 * belong together, its spans would only fill the collector. Pass it to clients that take a `fetch`.
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
