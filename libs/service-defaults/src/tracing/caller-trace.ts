import { isRecordingSpans } from './spans';
import { newTrace, newTraceId, traceIdOf, traceOf } from './trace-context';
import type { TraceContext } from './trace-context';

/** One a process, as the recorder of spans is. */
let areCallersTrusted = false;

/** Whether the traces that callers name are continued, their decision to sample included. */
export function trustCallers(isTrusted: boolean): void {
  areCallersTrusted = isTrusted;
}

/**
 * A stranger who chose the identifier or the sampled flag could have every request exported: the samplers
 * decide by both.
 */
function isContinued(): boolean {
  return areCallersTrusted || !isRecordingSpans();
}

type Headers = Readonly<Record<string, unknown>>;

/**
 * The identifier of a request in logs and problems: that of the caller's trace where it is continued, else a
 * new one.
 */
export function requestIdOf(headers: Headers): string {
  return (isContinued() ? traceIdOf(headers['traceparent']) : null) ?? newTraceId();
}

/**
 * Where the trace of a request begins: under the caller, or as a trace of its own that is linked to the
 * caller's.
 */
export function originOf(
  headers: Headers,
  requestId: string,
): { parent: TraceContext; links: readonly TraceContext[] } {
  const caller = traceOf(headers);
  if (caller === null) return { parent: newTrace(requestId), links: [] };
  return isContinued() ? { parent: caller, links: [] } : { parent: newTrace(requestId), links: [caller] };
}
