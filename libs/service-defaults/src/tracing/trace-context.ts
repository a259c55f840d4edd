import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';

const current = new AsyncLocalStorage<string>();
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);

/** The trace identifier (32 hexadecimal digits) of the request being handled, or undefined outside of one. */
export function currentTraceId(): string | undefined {
  return current.getStore();
}

/** Runs `work`, and everything it starts, as part of a trace, e.g. a consumer handling a message. */
export function withTraceId<T>(traceId: string, work: () => T): T {
  return current.run(traceId, work);
}

/** A fresh trace identifier: 32 hexadecimal digits. */
export function newTraceId(): string {
  return randomUUID().replaceAll('-', '');
}

/** The trace identifier of a `traceparent` header (W3C Trace Context, section 3.2); null when it is absent or malformed. */
export function traceIdOf(traceparent: unknown): string | null {
  if (typeof traceparent !== 'string') return null;
  const [, traceId, spanId] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || traceId === NO_TRACE || spanId === NO_SPAN) return null;
  return traceId;
}
