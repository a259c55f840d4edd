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
export type { ApiDescription, ServiceDefinition } from './application/service-definition';
export { ServiceDefaultsModule } from './service-defaults.module';
export { ProblemException, problems } from './problems/problem-exception';
export { ProblemDetailsFilter } from './problems/problem-details.filter';
export { ProblemMappers } from './problems/problem-mappers';
export type { Problem } from './problems/problem';
export { HealthRegistry } from './health/health-registry';
export { ShutdownRegistry } from './health/shutdown-registry';
export { Metrics } from './metrics/metrics';
export type { Sample } from './metrics/metrics';
export { jsonStringReply, sendJsonText } from './json/send-json-text';
export { ServiceLogger } from './logging/service-logger';
export { hideTokens, logSafeError, logSafeUrl } from './logging/log-safe';
export { validatedBy } from './problems/validation';
export { SignedCursor } from './paging/signed-cursor';
export { pageKeyQuery, pageSizeQuery } from './paging/page-query';
export { PROBLEM_JSON, renderProblem } from './problems/render-problem';
export { Documented, OPERATION_DOCS } from './open-api/documented';
export { operationObject } from './open-api/operation-object';
export { SchemaComponents } from './open-api/schema-components';
export type {
  AnswerDocs,
  ExampleDocs,
  HeaderDocs,
  OperationDocs,
  ParameterDocs,
  RouteRequirement,
} from './open-api/documented';
export { ANSWER_HEADERS, jsonAnswer, problemAnswer, problemBody, problemExample } from './open-api/answers';
export { NEXT_PAGE_KEY_DESCRIPTION, PAGE_QUERY_DOCS } from './paging/page-docs';
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
export type { SpanAttributes, TraceContext } from './tracing/trace-context';
export { inSpan, openSpan, recordSpansWith } from './tracing/spans';
export type { SpanOptions } from './tracing/spans';
export { tracedFetch } from './tracing/traced-fetch';
