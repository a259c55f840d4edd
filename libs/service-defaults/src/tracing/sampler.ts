import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import type { Sampler } from '@opentelemetry/sdk-trace-base';
import type { TracingConfig } from './tracing-settings';

type SamplerName = NonNullable<TracingConfig['OTEL_TRACES_SAMPLER']>;

/** Builds the sampler that the configuration names; `parentbased_always_on` unless it does. */
export function samplerOf({
  OTEL_TRACES_SAMPLER: name = 'parentbased_always_on',
  OTEL_TRACES_SAMPLER_ARG: ratio = 1,
}: TracingConfig): Sampler {
  const samplers = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
    parentbased_always_on: () => parentBased(new AlwaysOnSampler()),
    parentbased_always_off: () => parentBased(new AlwaysOffSampler()),
    parentbased_traceidratio: () => parentBased(new TraceIdRatioBasedSampler(ratio)),
  } satisfies Record<SamplerName, () => Sampler>;
  return samplers[name]();
}

function parentBased(root: Sampler): Sampler {
  return new ParentBasedSampler({ root });
}
