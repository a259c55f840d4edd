import { isRecordingSpans } from './spans';
import { newTrace, newTraceId, traceIdOf, traceOf } from './trace-context';
import type { TraceContext } from './trace-context';

/** One setting per process, like the recorder of spans. */
let areCallersTrusted = false;

/** Sets whether callers' traces are continued, including their sampling decision. */
export function trustCallers(isTrusted: boolean): void {
  areCallersTrusted = isTrusted;
}

/**
 * Whether callers' traces are continued. If untrusted callers could choose the trace id or the sampled flag,
 * which determine sampling, they could have every request exported.
 */
function isContinued(): boolean {
  return areCallersTrusted || !isRecordingSpans();
}

type Headers = Readonly<Record<string, unknown>>;

/**
 * Returns the id of a request for logs and problems: the caller's trace id if its trace is continued, else a
 * new one.
 */
export function requestIdOf(headers: Headers): string {
  return (isContinued() ? traceIdOf(headers['traceparent']) : null) ?? newTraceId();
}

/**
 * Returns the parent of a request's spans, and its linked traces. The parent is the caller if its trace is
 * continued, else a new trace linked to the caller's.
 */
export function originOf(
  headers: Headers,
  requestId: string,
): { parent: TraceContext; links: readonly TraceContext[] } {
  const caller = traceOf(headers);
  if (caller === null) return { parent: newTrace(requestId), links: [] };
  return isContinued() ? { parent: caller, links: [] } : { parent: newTrace(requestId), links: [caller] };
}
