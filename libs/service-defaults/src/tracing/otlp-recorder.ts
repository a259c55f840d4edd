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

// Only ever imported lazily (see Tracing): a service that exports no traces does not load OpenTelemetry's
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
 * Starts to record spans and to export them in batches, until it is shut down. The queue is bounded: while
 * the collector is away, spans are dropped and nothing waits. The SDK itself reads the variables of its
 * sampler and its batches, which the configuration has checked.
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
 * Opens spans of OpenTelemetry under our trace contexts. Its own context manager is not used: there is one
 * already.
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
    // A trace without a span has an identifier already, in logs and problems: the root span takes it.
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

/** Random identifiers, except where a trace has one already. */
class TraceIds implements IdGenerator {
  private readonly random = new RandomIdGenerator();
  private given: string | null = null;

  /** Has root spans that `open` starts take `traceId`. */
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

/** The exporter for a plan; loads the one that its protocol needs. */
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

/** Tells of an outage of the collector once, not for every batch that is lost in it. */
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
      // The type only: a text might quote the address with what stands in it.
      this.logger.warn(`spans cannot be exported and are dropped: ${result.error?.name ?? 'refused'}`);
    if (!hasFailed && this.isFailing) this.logger.log('spans are exported again');
    this.isFailing = hasFailed;
  }
}
