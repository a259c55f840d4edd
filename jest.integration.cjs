const preset = require('./jest.preset.cjs');

/** Integration tests: real PostgreSQL and RabbitMQ, found or started by the global setup. */
module.exports = {
  ...preset,
  setupFiles: [...preset.setupFiles, '<rootDir>/libs/testing/src/record-traffic.cjs'],
  testMatch: ['**/*.integration-spec.ts', '**/*.e2e-spec.ts'],
  globalSetup: '<rootDir>/libs/testing/src/jest-global-setup.cjs',
  globalTeardown: '<rootDir>/libs/testing/src/jest-global-teardown.cjs',
  // Checks every response of the services in these tests against their API documents.
  setupFilesAfterEnv: ['<rootDir>/libs/testing/src/api-document/jest-contract.ts'],
  testTimeout: 30_000,
};
