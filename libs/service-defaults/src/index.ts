export { CLOCK } from './clock';
export { ConfigError, loadConfig } from './config/config';
export { flag, secret, serviceConfigShape } from './config/service-settings';
export type { ServiceConfig } from './config/service-settings';
export { createServiceApplication } from './application/create-service-application';
export { OpenConnections } from './application/close-http';
export { CommandError, runCommand } from './application/run-command';
export { RecurringJob } from './application/recurring-job';
export { runService } from './application/run-service';
export { stopService } from './application/stop-service';
export type { StopTiming } from './application/stop-service';
export type { ServiceDefinition } from './application/service-definition';
export type { ServiceDefaultsOptions } from './service-defaults.module';
export { ServiceDefaultsModule } from './service-defaults.module';
export { ProblemException, problems } from './problems/problem-exception';
export { ProblemDetailsFilter } from './problems/problem-details.filter';
export { ProblemMappers } from './problems/problem-mappers';
export type { ProblemMapper } from './problems/problem-mappers';
export type { Problem } from './problems/problem';
export { HealthRegistry } from './health/health-registry';
export type { HealthCheck } from './health/health-registry';
export { ShutdownRegistry } from './health/shutdown-registry';
export type { DrainHook } from './health/shutdown-registry';
export { DURATION_BUCKETS_SECONDS, Metrics } from './metrics/metrics';
export type { Sample } from './metrics/metrics';
export { jsonStringReply, sendJsonText } from './json/send-json-text';
export { ServiceLogger } from './logging/service-logger';
export type { LogSink } from './logging/service-logger';
export { hideTokens, logSafeError, logSafeUrl } from './logging/log-safe';
export { validatedBy } from './problems/validation';
export { SignedCursor } from './paging/signed-cursor';
export { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, pageKeyQuery, pageSizeQuery } from './paging/page-query';
export { Documented } from './open-api/documented';
export type {
  AnswerDocs,
  ApiDocs,
  BodyDocs,
  ExampleDocs,
  HeaderDocs,
  OperationDocs,
  ParameterDocs,
  RouteRequirement,
} from './open-api/documented';
export { ANSWER_HEADERS, jsonAnswer, problemAnswer, problemBody, problemExample } from './open-api/answers';
export type { OpenApiDocument } from './open-api/document';
export { previewDocument } from './open-api/preview-document';
export { NEXT_PAGE_KEY_DESCRIPTION, PAGE_QUERY_DOCS } from './paging/page-docs';
export { GETTING_A_TOKEN, conventions } from './open-api/conventions';
export {
  currentTrace,
  currentTraceId,
  newTrace,
  newTraceId,
  traceHeaders,
  traceIdOf,
  traceOf,
  withTrace,
  withoutTrace,
} from './tracing/trace-context';
export type { RecordedSpan, SpanAttributes, TraceContext, TraceHeaders } from './tracing/trace-context';
export { inSpan, isRecordingSpans, openSpan, recordSpansWith } from './tracing/spans';
export type { SpanKind, SpanOptions, SpanRecorder } from './tracing/spans';
export { tracedFetch } from './tracing/traced-fetch';
export type { TracingConfig } from './tracing/tracing-settings';
