export { createTestDatabase } from './test-database';
export type { TestDatabase } from './test-database';
export { createTestBroker } from './test-broker';
export type { BrokerManagement, QueueState, ReceivedMessage, TestBroker } from './test-broker';
export { eventually } from './eventually';
export { TEST_TOKEN_CONFIG, testAccessToken } from './access-token';
export type { TestTokenOverrides } from './access-token';
export { runProcess } from './run-process';
export type { RunningProcess } from './run-process';
