import { z } from 'zod';
import { ConfigError, loadConfig } from '../index';
import { exportPlan, tracingConfigShape } from './tracing-settings';
import type { ExportPlan } from './tracing-settings';

function planOf(env: NodeJS.ProcessEnv): ExportPlan | null {
  return exportPlan(loadConfig(z.object(tracingConfigShape), env));
}

describe('the export of traces', () => {
  it.each([
    {},
    { OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'always_on' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_SDK_DISABLED: 'true' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_TRACES_EXPORTER: 'none' },
  ])('is off with %p', (env) => {
    expect(planOf(env)).toBeNull();
  });

  it('uses the traces path below the endpoint, with the defaults of the specification', () => {
    expect(planOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/otlp/' })).toEqual({
      url: 'http://collector:4318/otlp/v1/traces',
      protocol: 'http/protobuf',
      headers: {},
      timeoutMs: 10_000,
      isCompressed: false,
    });
  });

  it('prefers the variables for traces', () => {
    expect(
      planOf({
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/in',
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
        OTEL_EXPORTER_OTLP_HEADERS: 'api-key=all, tenant=a%20b',
        OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'api-key=traces=',
        OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '50',
        OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      }),
    ).toEqual({
      url: 'https://traces.example/in',
      protocol: 'http/json',
      headers: { 'api-key': 'traces=', tenant: 'a b' },
      timeoutMs: 50,
      isCompressed: true,
    });
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'sesame'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'key=%sesame'],
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5'],
  ])('refuses %s=%s, and does not quote it', (variable, value) => {
    expect(() => planOf({ [variable]: value })).toThrow(ConfigError);
    expect(() => planOf({ [variable]: value })).toThrow(variable);
    expect(() => planOf({ [variable]: value })).not.toThrow('sesame');
  });
});
