const { randomBytes } = require('node:crypto');
const { mkdirSync, readFileSync } = require('node:fs');
const { join } = require('node:path');

const swc = JSON.parse(readFileSync(join(__dirname, '.swcrc'), 'utf8'));
delete swc.$schema;

// Jest writes its JSON report here and does not create the folder itself.
mkdirSync(join(__dirname, 'test-results'), { recursive: true });

// Id of this run, which its workers inherit: see libs/testing/src/test-run.ts.
process.env.TEST_RUN = randomBytes(6).toString('hex');

/** Settings of every Jest run: SWC for TypeScript, the workspace's import names, no leaks between files. */
module.exports = {
  rootDir: __dirname,
  testEnvironment: 'node',
  transform: {
    '^.+\\.[cm]?[jt]s$': ['@swc/jest', { ...swc, swcrc: false, module: { type: 'commonjs' } }],
  },
  // ESM-only packages that tests load in-process go through SWC too.
  transformIgnorePatterns: [
    '/node_modules/(?!(@cucumber|@unicode|jose|oidc-provider|openid-client|oauth4webapi)/)',
  ],
  moduleFileExtensions: ['ts', 'js', 'mjs', 'cjs', 'json'],
  moduleNameMapper: {
    '^@platform/settings-client/openfeature$': '<rootDir>/libs/settings-client/src/openfeature.ts',
    '^@platform/([^/]+)$': '<rootDir>/libs/$1/src/index.ts',
    '^#(platform|manifests|observability|start)/(.+)$': '<rootDir>/tools/$1/$2',
    '^#verification/(.+)$': '<rootDir>/verification/$1',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
  setupFiles: ['reflect-metadata'],
  restoreMocks: true,
};
