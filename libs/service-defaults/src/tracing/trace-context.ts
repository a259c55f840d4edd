import { AsyncLocalStorage } from 'node:async_hooks';
import { randomFillSync } from 'node:crypto';

/** A span that this process records; ended by whoever opened it. */
export interface RecordedSpan {
  set(attributes: SpanAttributes): void;
  /**
   * Marks the span as failed.
   * @param errorType a class of errors or a status, never a text that could quote data
   */
  fail(errorType: string): void;
  end(): void;
}

/**
 * Attributes of a span; undefined ones are left out. Never a secret, a name of a person, or an address with
 * its query.
 */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Where in a trace something happens (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /**
   * 16 hexadecimal digits: the span that what happens now hangs under; undefined at the start of a trace that
   * nobody records.
   */
  readonly spanId: string | undefined;
  /** Bit 0: the trace is sampled. */
  readonly flags: number;
  /** `tracestate` as it came in. */
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
 * A list of key=value members; anything else is dropped, as the recommendation allows, with the rest of the
 * trace kept.
 */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** The trace of the request or message being handled, or undefined outside of one. */
export function currentTrace(): TraceContext | undefined {
  return current.getStore();
}

/**
 * The trace identifier (32 hexadecimal digits) of the request or message being handled, or undefined outside
 * of one.
 */
export function currentTraceId(): string | undefined {
  return current.getStore()?.traceId;
}

/** Runs `work`, and everything it starts, as part of a trace, e.g. a consumer handling a message. */
export function withTrace<T>(trace: TraceContext, work: () => T): T {
  return current.run(trace, work);
}

/**
 * Runs `work`, and everything it starts, outside of any trace: what serves many requests belongs to none of
 * them.
 */
export function withoutTrace<T>(work: () => T): T {
  return current.run(undefined, work);
}

/** The start of a trace that no span belongs to yet and that is not sampled. */
export function newTrace(traceId: string = newTraceId()): TraceContext {
  return { traceId, spanId: undefined, flags: 0 };
}

const TRACE_ID_BYTES = 16;
/**
 * Random bytes for the next identifiers: asking for a few at a time costs more than the rest of an
 * identifier.
 */
const random = Buffer.alloc(256 * TRACE_ID_BYTES);
let used = random.length;

/** A fresh trace identifier: 32 hexadecimal digits. */
export function newTraceId(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  return random.toString('hex', used, (used += TRACE_ID_BYTES));
}

/**
 * The trace identifier of a `traceparent` header (W3C Trace Context, section 3.2); null when it is absent or
 * malformed.
 */
export function traceIdOf(traceparent: unknown): string | null {
  return traceOf({ traceparent })?.traceId ?? null;
}

/**
 * Reads the trace that headers carry; null when there is none or `traceparent` is malformed. A `tracestate`
 * that is not fit to be sent on is dropped. Source: W3C Trace Context, sections 3.2 and 3.3.
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
 * The headers that carry on a trace, the current one unless given; none outside of a trace. A trace without a
 * span has to name one: the first half of its own identifier, so that all that is sent on in it names the
 * same.
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
