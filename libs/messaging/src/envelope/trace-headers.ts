import { currentTrace, traceHeaders, traceOf } from '@platform/service-defaults';
import type { TraceContext } from '@platform/service-defaults';

/** Under this name MassTransit carries what W3C calls `traceparent`, in the message's headers and in the envelope. */
const MASSTRANSIT_TRACEPARENT = 'MT-Activity-Id';

type Headers = Readonly<Record<string, unknown>>;

/** The headers that carry a trace, the current one unless given, to whoever receives the message: W3C's and MassTransit's. None
 *  outside of a trace. */
export function messageTraceHeaders(
  trace: TraceContext | undefined = currentTrace(),
): Record<string, string> {
  const { traceparent, tracestate } = traceHeaders(trace);
  if (traceparent === undefined) return {};
  const headers = { traceparent, [MASSTRANSIT_TRACEPARENT]: traceparent };
  return tracestate === undefined ? headers : { ...headers, tracestate };
}

/** The trace that a message came in, from the first of its headers that tell: those of the transport before those of the envelope,
 *  since whoever sent it on last wrote them. Null when none does. */
export function messageTrace(...sources: readonly (Headers | undefined)[]): TraceContext | null {
  for (const headers of sources) {
    if (headers === undefined) continue;
    const trace = traceOf(headers) ?? traceOf({ ...headers, traceparent: headers[MASSTRANSIT_TRACEPARENT] });
    if (trace !== null) return trace;
  }
  return null;
}
