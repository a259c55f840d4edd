export { createTestDatabase } from './test-database';
export type { Migrate, TestDatabase, TestRole } from './test-database';
export { createTestBroker } from './test-broker';
export type { BrokerAddresses, TestBroker } from './test-broker';
export { BrokerManagement } from './broker-management';
export type {
  ClientSettings,
  OutgoingMessage,
  QueueDeclaration,
  QueueState,
  ReceivedMessage,
} from './broker-management';
export { eventually } from './eventually';
export { TEST_TOKEN_CONFIG, testAccessToken } from './access-token';
export type { TestTokenOverrides } from './access-token';
export { runProcess } from './run-process';
export type { ProcessOptions, RunningProcess } from './run-process';
export { TcpProxy } from './tcp-proxy';
export { EmptyProject } from './empty-project';
export { PrivatePostgresql } from './private-postgresql';
export { describeMigrations } from './describe-migrations';
export { describeStatementsAtScale, scaleRows } from './describe-statements-at-scale';
export type { HotStatement, Scale } from './describe-statements-at-scale';
export { StatementPlans } from './statement-plans';
export type { PlanCacheMode, PlannedConnections, StatementPlan } from './statement-plans';
export { describeApiDocument } from './api-document/describe-api-document';
export { permitFaults, watchTraffic } from './api-document/watch-traffic';
export { apiDocument } from './api-document/workspace-file';
export { wrongRefusals } from './api-document/standard-refusals';
export { MIN_SECRET_LENGTH, findLeaks } from './secret-scan';
export type { Leak } from './secret-scan';
export { secretsIn } from './secrets-in-traffic';
export type { Half } from './secrets-in-traffic';
export { recordedLog, rememberSecret } from './recording';
export { scanRecording } from './scan-recording';
export { PrivateRabbitmq } from './private-rabbitmq';
export { startTraceCollector } from './trace-collector';
export type { CollectedExport, CollectedSpan, TraceCollector } from './trace-collector';
export { SpanNotes } from './span-notes';
export type { NotedSpan } from './span-notes';
