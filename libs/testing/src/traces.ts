import type { IncomingMessage } from 'node:http';
import { startHttpDouble } from './http-doubles';

/** The parts of an exported span that tests check. */
export interface CollectedSpan {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root span of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  /** OpenTelemetry's number: 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly hasFailed: boolean;
  readonly linkedTraceIds: readonly string[];
}

interface CollectedExport {
  readonly path: string;
  readonly contentType: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** A receiver of OTLP over HTTP. */
export interface TraceCollector {
  /** Value for OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly exports: readonly CollectedExport[];
  /** Returns the spans of all JSON exports so far. */
  spans(): CollectedSpan[];
  close(): Promise<void>;
}

interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes?: OtlpAttribute[];
  status?: { code?: number };
  links?: { traceId: string }[];
}

interface OtlpAttribute {
  key: string;
  value: Record<string, unknown>;
}

interface OtlpRequest {
  resourceSpans: { resource: { attributes: OtlpAttribute[] }; scopeSpans: { spans: OtlpSpan[] }[] }[];
}

const FAILED = 2;

/**
 * Starts a collector on a free port.
 * @param isSilent accept connections but never respond
 */
export async function startTraceCollector({ isSilent = false } = {}): Promise<TraceCollector> {
  const exports: CollectedExport[] = [];
  const double = await startHttpDouble((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { url: path = '/', headers } = request;
      exports.push({
        path,
        contentType: headers['content-type'] ?? '',
        headers,
        body: Buffer.concat(chunks),
      });
      if (!isSilent) response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  return {
    ...double,
    exports,
    spans: () =>
      exports
        .filter(({ contentType }) => contentType === 'application/json')
        .flatMap(({ body }) => spansOf(JSON.parse(body.toString()) as OtlpRequest)),
  };
}

function spansOf({ resourceSpans }: OtlpRequest): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(valuesOf(resource.attributes)['service.name']);
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => collected(service, span)));
  });
}

function collected(service: string, span: OtlpSpan): CollectedSpan {
  const { traceId, spanId, name, kind } = span;
  return {
    service,
    traceId,
    spanId,
    name,
    kind,
    parentSpanId: span.parentSpanId ?? '',
    attributes: valuesOf(span.attributes ?? []),
    hasFailed: span.status?.code === FAILED,
    linkedTraceIds: (span.links ?? []).map((link) => link.traceId),
  };
}

function valuesOf(attributes: readonly OtlpAttribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

/** A span opened by the code under test. */
export interface NotedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined for the root span of a trace. */
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

/** A span recorder in memory, for `recordSpansWith`, because the exporter cannot run inside Jest. */
export class SpanNotes {
  readonly spans: NotedSpan[] = [];

  /** Opens a span that is marked as sampled. */
  open(parent: Trace, { name, kind, attributes = {}, links = [] }: Options) {
    const { traceId, spanId: parentSpanId } = parent;
    const spanId = String(this.spans.length + 1).padStart(16, '0');
    const noted: NotedSpan = {
      traceId,
      spanId,
      parentSpanId,
      name,
      kind,
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

  /** Returns the spans of one trace in the order in which they were opened. */
  of(traceId: string): NotedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }
}
