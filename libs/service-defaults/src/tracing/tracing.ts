import { Logger } from '@nestjs/common';
import type { OnApplicationShutdown } from '@nestjs/common';
import type { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { SECOND_MS, withTimeout } from '@platform/time';
import { trustCallers } from './caller-trace';
import { recordSpansWith } from './spans';
import { exportPlan } from './tracing-settings';
import type { TracingConfig } from './tracing-settings';

/** How long a stop waits for the last spans: a collector that hangs must not keep the process. */
const FLUSH_LIMIT_MS = 3 * SECOND_MS;

/** The recording of this process's spans: started with the service, flushed when it stops. */
export class Tracing implements OnApplicationShutdown {
  private constructor(private readonly started: BasicTracerProvider | null) {}

  /**
   * Records spans if the configuration names an endpoint for them. OpenTelemetry's SDK is only loaded then.
   */
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
