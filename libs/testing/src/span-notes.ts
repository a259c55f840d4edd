/** A span that code under test has opened, and what it was told. */
export interface NotedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined at the root of a trace. */
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: string;
  readonly attributes: Record<string, unknown>;
  readonly linkedTraceIds: readonly string[];
  failure: string | null;
  hasEnded: boolean;
}

interface Trace {
  readonly traceId: string;
  readonly spanId: string | undefined;
}

interface Options {
  readonly name: string;
  readonly kind: string;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly links?: readonly Trace[];
}

/** A recorder that keeps spans in memory, for `recordSpansWith`; the exporter cannot run inside of Jest. */
export class SpanNotes {
  readonly spans: NotedSpan[] = [];

  /** Begins a span that counts as sampled. */
  open(parent: Trace, { name, kind, attributes = {}, links = [] }: Options) {
    const { traceId, spanId: parentSpanId } = parent;
    const spanId = String(this.spans.length + 1).padStart(16, '0');
    const noted: NotedSpan = {
      ...{ traceId, spanId, parentSpanId, name, kind },
      attributes: { ...attributes },
      linkedTraceIds: links.map((link) => link.traceId),
      failure: null,
      hasEnded: false,
    };
    this.spans.push(noted);
    const span = {
      set: (more: Readonly<Record<string, unknown>>) => void Object.assign(noted.attributes, more),
      fail: (errorType: string) => void (noted.failure = errorType),
      end: () => void (noted.hasEnded = true),
    };
    return { traceId, spanId, flags: 1, span };
  }

  /** The spans of one trace, in the order they were opened. */
  of(traceId: string): NotedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }
}
