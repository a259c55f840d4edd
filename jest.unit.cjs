module.exports = { ...require('./jest.preset.cjs'), testMatch: ['**/*.spec.ts'], testTimeout: 30_000 };
