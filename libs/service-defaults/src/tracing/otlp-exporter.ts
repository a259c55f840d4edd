import { Logger } from '@nestjs/common';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import { withoutTrace } from './trace-context';
import type { ExportPlan } from './tracing-settings';

type ExportResult = Parameters<Parameters<SpanExporter['export']>[1]>[0];

const SUCCESS = 0;

/** The exporter for a plan; loads the one that its protocol needs. */
export async function otlpExporter(plan: ExportPlan): Promise<SpanExporter> {
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
