module.exports = { ...require('./jest.preset.cjs'), testMatch: ['**/*.spec.ts'] };
