import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import {
  createTraceState,
  ROOT_CONTEXT,
  SpanKind as OtelSpanKind,
  SpanStatusCode,
  trace as otelTrace,
} from '@opentelemetry/api';
import type { Attributes, Context, Span, SpanContext, Tracer } from '@opentelemetry/api';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, RandomIdGenerator } from '@opentelemetry/sdk-trace-base';
import type { IdGenerator, ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import { recordSpansWith } from './spans';
import type { SpanKind, SpanOptions, SpanRecorder } from './spans';
import { withoutTrace } from './trace-context';
import type { RecordedSpan, SpanAttributes, TraceContext } from './trace-context';
import type { ExportPlan, TracingConfig } from './tracing-settings';

// Imported lazily only (see Tracing), so that a service that exports no traces does not load OpenTelemetry's
// SDK.

const KINDS = {
  internal: OtelSpanKind.INTERNAL,
  server: OtelSpanKind.SERVER,
  client: OtelSpanKind.CLIENT,
  producer: OtelSpanKind.PRODUCER,
  consumer: OtelSpanKind.CONSUMER,
} as const satisfies Record<SpanKind, OtelSpanKind>;

const MAX_ATTRIBUTE_LENGTH = 256;

/**
 * Starts to record spans and to export them in batches, until shutdown. The queue is bounded: while the
 * collector is unavailable, spans are dropped and nothing blocks. The SDK itself reads the variables of its
 * sampler and batches, which the configuration has validated.
 */
export async function startOtlpRecorder(
  plan: ExportPlan,
  config: TracingConfig,
  about: { name: string; version: string },
): Promise<BasicTracerProvider> {
  const ids = new TraceIds();
  const provider = new BasicTracerProvider({
    idGenerator: ids,
    resource: defaultResource().merge(
      resourceFromAttributes({
        'service.instance.id': randomUUID(),
        'service.version': about.version,
        'service.name': about.name,
        ...config.OTEL_RESOURCE_ATTRIBUTES,
        ...(config.OTEL_SERVICE_NAME === undefined ? {} : { 'service.name': config.OTEL_SERVICE_NAME }),
      }),
    ),
    spanLimits: { attributeValueLengthLimit: MAX_ATTRIBUTE_LENGTH },
    spanProcessors: [new BatchSpanProcessor(await otlpExporter(plan))],
  });
  recordSpansWith(new OtelRecorder(provider.getTracer(about.name, about.version), ids));
  return provider;
}

/**
 * Opens OpenTelemetry spans in our trace contexts. OpenTelemetry's own context manager is not used, because
 * trace-context already propagates contexts.
 */
class OtelRecorder implements SpanRecorder {
  constructor(
    private readonly tracer: Tracer,
    private readonly ids: TraceIds,
  ) {}

  open(parent: TraceContext, { name, kind, attributes = {}, links = [] }: SpanOptions): TraceContext {
    const options = {
      kind: KINDS[kind],
      attributes: attributes as Attributes,
      links: links.flatMap((link) => (isSpan(link) ? [{ context: spanContextOf(link) }] : [])),
    };
    const open = (under: Context): Span => this.tracer.startSpan(name, options, under);
    // A trace without a span already has an id, used in logs and problems. The root span takes that id.
    const span = isSpan(parent)
      ? open(otelTrace.setSpanContext(ROOT_CONTEXT, spanContextOf(parent)))
      : this.ids.using(parent.traceId, () => open(ROOT_CONTEXT));
    const { spanId, traceFlags } = span.spanContext();
    const { traceId, state } = parent;
    return { traceId, spanId, flags: traceFlags, state, span: new OtelSpan(span) };
  }
}

class OtelSpan implements RecordedSpan {
  constructor(private readonly span: Span) {}

  set(attributes: SpanAttributes): void {
    this.span.setAttributes(attributes);
  }

  fail(errorType: string): void {
    this.span.setAttribute('error.type', errorType);
    this.span.setStatus({ code: SpanStatusCode.ERROR });
  }

  end(): void {
    this.span.end();
  }
}

/** Generates random ids, except for a trace that already has one. */
class TraceIds implements IdGenerator {
  private readonly random = new RandomIdGenerator();
  private given: string | null = null;

  /** Makes the root spans that `open` starts take `traceId`. */
  using<T>(traceId: string, open: () => T): T {
    this.given = traceId;
    try {
      return open();
    } finally {
      this.given = null;
    }
  }

  generateTraceId(): string {
    return this.given ?? this.random.generateTraceId();
  }

  generateSpanId(): string {
    return this.random.generateSpanId();
  }
}

function isSpan(trace: TraceContext): trace is TraceContext & { spanId: string } {
  return trace.spanId !== undefined;
}

function spanContextOf({
  traceId,
  spanId,
  flags,
  state,
  span,
}: TraceContext & { spanId: string }): SpanContext {
  return {
    traceId,
    spanId,
    traceFlags: flags,
    isRemote: span === undefined,
    ...(state === undefined ? {} : { traceState: createTraceState(state) }),
  };
}

type ExportResult = Parameters<Parameters<SpanExporter['export']>[1]>[0];

const SUCCESS = 0;

/** Returns the exporter of a plan. Loads only the one for its protocol. */
async function otlpExporter(plan: ExportPlan): Promise<SpanExporter> {
  const { OTLPTraceExporter } =
    plan.protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  const compression = (plan.isCompressed ? 'gzip' : 'none') as never;
  const { url, headers, timeoutMs: timeoutMillis } = plan;
  return new ReportingExporter(
    new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis, compression }),
  );
}

/** Logs an outage of the collector once, rather than once per lost batch. */
class ReportingExporter implements SpanExporter {
  private readonly logger = new Logger('tracing');
  private isFailing = false;

  constructor(private readonly exporter: SpanExporter) {}

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.exporter.export(spans, (result) => {
      withoutTrace(() => {
        this.report(result);
      });
      done(result);
    });
  }

  forceFlush(): Promise<void> {
    return this.exporter.forceFlush?.() ?? Promise.resolve();
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown();
  }

  private report(result: ExportResult): void {
    const hasFailed = (result.code as number) !== SUCCESS;
    if (hasFailed && !this.isFailing)
      // Only the type: the text might quote the URL and its credentials.
      this.logger.warn(`spans cannot be exported and are dropped: ${result.error?.name ?? 'refused'}`);
    if (!hasFailed && this.isFailing) this.logger.log('spans are exported again');
    this.isFailing = hasFailed;
  }
}
