export { CLOCK, ServiceDefaultsModule } from './service-defaults.module';
export {
  addressesOf,
  brokerAddresses,
  postgresAddresses,
  sessionAttributes,
  shuffledAddressesOf,
} from './config/server-addresses';
export { ConfigError, flag, loadConfig, secret, serviceConfigShape } from './config/config';
export type { ServiceConfig } from './config/config';
export { createServiceApplication } from './application/create-service-application';
export type { ApiDescription, ServiceDefinition } from './application/create-service-application';
export { OpenConnections, stopService, ShutdownRegistry } from './application/stop-service';
export {
  entityTag,
  entityTagsOf,
  isConditional,
  isNotModified,
  mayWrite,
  parseEntityTags,
} from './application/entity-tag';
export type { EntityTags, Preconditions, Revision } from './application/entity-tag';
export { RecurringJob } from './application/recurring-job';
export { CommandError, runCommand, runService } from './application/run-service';
export { textWriter } from './application/program-output';
export type { WriteText } from './application/program-output';
export { ProblemException, problems, PROBLEM_JSON, renderProblem } from './problems/problem';
export type { Problem } from './problems/problem';
export { ProblemDetailsFilter, ProblemMappers } from './problems/problem-details.filter';
export { HealthRegistry } from './health/health';
export { Metrics } from './metrics/metrics';
export type { Sample } from './metrics/metrics';
export { jsonStringReply, sendJsonText } from './json/json';
export { ServiceLogger } from './logging/service-logger';
export { hideTokens, logSafeError, logSafeUrl } from './logging/log-safe';
export { validatedBy } from './problems/validation';
export {
  SignedCursor,
  cursorConfigShape,
  pageKeyQuery,
  pageSizeQuery,
  NEXT_PAGE_KEY_DESCRIPTION,
  PAGE_QUERY_DOCS,
} from './paging/paging';
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
export { inSpan, openSpan, recordSpansWith, tracedFetch } from './tracing/spans';
export type { SpanOptions } from './tracing/spans';
