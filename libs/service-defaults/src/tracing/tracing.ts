import { Logger } from '@nestjs/common';
import type { OnApplicationShutdown } from '@nestjs/common';
import type { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { SECOND_MS, withTimeout } from '@platform/time';
import { trustCallers } from './caller-trace';
import { recordSpansWith } from './spans';
import { exportPlan } from './tracing-settings';
import type { TracingConfig } from './tracing-settings';

/** Maximum wait of a stop for the last spans, so that a hanging collector cannot keep the process alive. */
const FLUSH_LIMIT_MS = 3 * SECOND_MS;

/** Records this process's spans, from the service's start until a final flush on shutdown. */
export class Tracing implements OnApplicationShutdown {
  private constructor(private readonly started: BasicTracerProvider | null) {}

  /** Starts recording if the configuration names an endpoint. Only then is OpenTelemetry's SDK loaded. */
  static async start(config: TracingConfig, about: { name: string; version: string }): Promise<Tracing> {
    const plan = exportPlan(config);
    trustCallers(config.TRACE_PARENT_TRUSTED === true);
    if (plan === null) return new Tracing(null);
    const { startOtlpRecorder } = await import('./otlp-recorder');
    return new Tracing(await startOtlpRecorder(plan, config, about));
  }

  async onApplicationShutdown(): Promise<void> {
    const { started } = this;
    if (started === null) return;
    recordSpansWith(null);
    try {
      await withTimeout(started.shutdown(), FLUSH_LIMIT_MS);
    } catch (error) {
      new Logger('tracing').warn(`the last spans were not exported: ${String(error)}`);
    }
  }
}
