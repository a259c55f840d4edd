import { currentTrace, newTrace, withTrace } from './trace-context';
import type { SpanAttributes, TraceContext } from './trace-context';

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

/** One a process, as its traces are; null: nothing is recorded, and identifiers are passed on as they came. */
let recorder: SpanRecorder | null = null;

/** Has spans recorded from now on, or with null no longer. */
export function recordSpansWith(next: SpanRecorder | null): void {
  recorder = next;
}

/** Whether spans are recorded. */
export function isRecordingSpans(): boolean {
  return recorder !== null;
}

/** Opens a span and gives the trace to do its work in; `trace.span` is to be ended. Without a recorder it is the parent itself. */
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
