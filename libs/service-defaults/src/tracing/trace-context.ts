import { AsyncLocalStorage } from 'node:async_hooks';
import { randomFillSync } from 'node:crypto';

/** A span that this process records. Whoever opened it must end it. */
export interface RecordedSpan {
  set(attributes: SpanAttributes): void;
  /**
   * Marks the span as failed.
   * @param errorType an error class or a status, never a text that could quote data
   */
  fail(errorType: string): void;
  end(): void;
}

/**
 * Attributes of a span; undefined ones are omitted. Never a secret, a person's name, or a URL with its query.
 */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A position in a trace (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /**
   * 16 hexadecimal digits: the current span, parent of what happens now. Undefined at the start of a trace
   * that is not recorded.
   */
  readonly spanId: string | undefined;
  /** Bit 0: the trace is sampled. */
  readonly flags: number;
  /** `tracestate` as received. */
  readonly state?: string | undefined;
  /** Present when this process records the span. */
  readonly span?: RecordedSpan | undefined;
}

/** The headers that carry a trace to the next process. */
export interface TraceHeaders {
  traceparent?: string;
  tracestate?: string;
}

const current = new AsyncLocalStorage<TraceContext | undefined>();
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);
/** The flags of W3C Trace Context level 2: sampled and random. */
const KNOWN_FLAGS = 0x03;
/**
 * Printable ASCII of at most 512 characters. Any other `tracestate` is dropped, as the recommendation allows,
 * and the trace is kept.
 */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** Returns the trace of the request or message being handled; undefined outside one. */
export function currentTrace(): TraceContext | undefined {
  return current.getStore();
}

/**
 * Returns the trace id (32 hexadecimal digits) of the request or message being handled; undefined outside
 * one.
 */
export function currentTraceId(): string | undefined {
  return current.getStore()?.traceId;
}

/**
 * Runs `work`, and everything that it starts, as part of a trace. For a consumer that handles a message, for
 * example.
 */
export function withTrace<T>(trace: TraceContext, work: () => T): T {
  return current.run(trace, work);
}

/** Runs `work`, and everything that it starts, outside any trace. For work that serves many requests. */
export function withoutTrace<T>(work: () => T): T {
  return current.run(undefined, work);
}

/** Returns the start of an unsampled trace without a span. */
export function newTrace(traceId: string = newTraceId()): TraceContext {
  return { traceId, spanId: undefined, flags: 0 };
}

const TRACE_ID_BYTES = 16;
/**
 * Pool of random bytes for the next ids. Generating a few bytes at a time costs more than the rest of an id.
 */
const random = Buffer.alloc(256 * TRACE_ID_BYTES);
let usedBytes = random.length;

/** Returns a new trace id: 32 hexadecimal digits. */
export function newTraceId(): string {
  if (usedBytes === random.length) {
    randomFillSync(random);
    usedBytes = 0;
  }
  return random.toString('hex', usedBytes, (usedBytes += TRACE_ID_BYTES));
}

/**
 * Returns the trace id of a `traceparent` header (W3C Trace Context, section 3.2); null if it is absent or
 * malformed.
 */
export function traceIdOf(traceparent: unknown): string | null {
  return traceOf({ traceparent })?.traceId ?? null;
}

/**
 * Returns the trace that headers carry; null if `traceparent` is absent or malformed. A malformed
 * `tracestate` is dropped. Source: W3C Trace Context, sections 3.2 and 3.3.
 */
export function traceOf(headers: Readonly<Record<string, unknown>>): TraceContext | null {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string') return null;
  const [, version, traceId, spanId, flags, rest] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || flags === undefined) return null;
  if (traceId === NO_TRACE || spanId === NO_SPAN || (version === '00' && rest !== undefined)) return null;
  const state = typeof tracestate === 'string' && TRACESTATE.test(tracestate) ? { state: tracestate } : {};
  return { traceId, spanId, flags: parseInt(flags, 16) & KNOWN_FLAGS, ...state };
}

/**
 * Returns the headers that propagate a trace (the current one unless given); none outside a trace.
 * `traceparent` must name a span: for a trace without a span it names the first half of the trace id, so that
 * all requests of the trace name the same span.
 */
export function traceHeaders(trace: TraceContext | undefined = currentTrace()): TraceHeaders {
  if (trace === undefined) return {};
  const { traceId, spanId = spanIdFrom(traceId), flags, state } = trace;
  const traceparent = `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
  return state === undefined ? { traceparent } : { traceparent, tracestate: state };
}

function spanIdFrom(traceId: string): string {
  const half = traceId.slice(0, 16);
  return half === NO_SPAN ? traceId.slice(16) : half;
}
