import { z } from 'zod';

const endpoint = z.url({ protocol: /^https?$/ });
const milliseconds = z.coerce.number().int().min(1).max(600_000);
const protocol = z.enum(['http/protobuf', 'http/json']);
const compression = z.enum(['none', 'gzip']);
const spans = z.coerce.number().int().min(1).max(100_000);

/**
 * Returns a schema for a list in OpenTelemetry's syntax: `key=value` members separated by commas, with
 * percent-encoded values.
 */
function pairs(): z.ZodType<Readonly<Record<string, string>>, string> {
  return z.string().transform((text, context) => {
    const found: Record<string, string> = {};
    for (const member of text.split(',').filter((each) => each.trim() !== '')) {
      const at = member.indexOf('=');
      const value = at < 1 ? null : decoded(member.slice(at + 1).trim());
      if (value === null) {
        context.addIssue({ code: 'custom', message: 'must be key=value members separated by commas' });
        return z.NEVER;
      }
      found[member.slice(0, at).trim()] = value;
    }
    return found;
  });
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

/**
 * The standard variables of OpenTelemetry that every service reads; part of `serviceConfigShape`. Spans are
 * recorded only if an OTLP endpoint is set; without one the other variables have no effect. Source:
 * OpenTelemetry specification, Environment Variables.
 */
export const tracingConfigShape = {
  /**
   * OTLP/HTTP endpoint. `/v1/traces` is appended to OTEL_EXPORTER_OTLP_ENDPOINT.
   * OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is used unchanged and takes precedence.
   */
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint.optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: protocol.optional(),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: protocol.optional(),
  /** Headers of each export, e.g. an API key: a secret. */
  OTEL_EXPORTER_OTLP_HEADERS: pairs().optional(),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: pairs().optional(),
  /** Maximum time of one export in ms; 10,000 unless given. */
  OTEL_EXPORTER_OTLP_TIMEOUT: milliseconds.optional(),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: milliseconds.optional(),
  OTEL_EXPORTER_OTLP_COMPRESSION: compression.optional(),
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: compression.optional(),
  /** `none` records nothing, whatever the endpoint. */
  OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none']).optional(),
  /** `true` records nothing, whatever the endpoint. */
  OTEL_SDK_DISABLED: z.stringbool().optional(),
  /**
   * Whether to continue HTTP callers' traces and their sampling decision. If not, their traces are linked,
   * and the sampler decides. Enable it only behind a gateway that sets `traceparent` itself.
   */
  TRACE_PARENT_TRUSTED: z.stringbool().optional(),
  /** Sampler of traces; `parentbased_always_on` unless given. */
  OTEL_TRACES_SAMPLER: z
    .enum([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ])
    .optional(),
  /** Share of traces that a `traceidratio` sampler records, 0 to 1; 1 unless given. */
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).optional(),
  /** Name in traces; the service's own name unless given. */
  OTEL_SERVICE_NAME: z.string().min(1).max(200).optional(),
  /** Further attributes of this process, e.g. `deployment.environment.name=production`. */
  OTEL_RESOURCE_ATTRIBUTES: pairs().optional(),
  /**
   * Batching: interval in ms (5,000 unless given), export timeout, queue size in spans (2,048) and batch size
   * in spans (512). Spans that do not fit into the queue are dropped.
   */
  OTEL_BSP_SCHEDULE_DELAY: milliseconds.optional(),
  OTEL_BSP_EXPORT_TIMEOUT: milliseconds.optional(),
  OTEL_BSP_MAX_QUEUE_SIZE: spans.optional(),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: spans.optional(),
} as const;

export type TracingConfig = z.output<z.ZodObject<typeof tracingConfigShape>>;

/** The destination and the settings of the export. */
export interface ExportPlan {
  readonly url: string;
  readonly protocol: 'http/protobuf' | 'http/json';
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly isCompressed: boolean;
}

/** Returns the export that a configuration requests; null if spans are not to be recorded. */
export function exportPlan(config: TracingConfig): ExportPlan | null {
  const url = config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? tracesUrl(config.OTEL_EXPORTER_OTLP_ENDPOINT);
  if (url === null || config.OTEL_SDK_DISABLED === true || config.OTEL_TRACES_EXPORTER === 'none')
    return null;
  const compressed = config.OTEL_EXPORTER_OTLP_TRACES_COMPRESSION ?? config.OTEL_EXPORTER_OTLP_COMPRESSION;
  return {
    url,
    protocol:
      config.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? config.OTEL_EXPORTER_OTLP_PROTOCOL ?? 'http/protobuf',
    headers: { ...config.OTEL_EXPORTER_OTLP_HEADERS, ...config.OTEL_EXPORTER_OTLP_TRACES_HEADERS },
    timeoutMs: config.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ?? config.OTEL_EXPORTER_OTLP_TIMEOUT ?? 10_000,
    isCompressed: compressed === 'gzip',
  };
}

function tracesUrl(base: string | undefined): string | null {
  if (base === undefined) return null;
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`;
  return url.href;
}
