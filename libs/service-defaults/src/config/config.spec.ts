import { z } from 'zod';
import { ConfigError, flag, loadConfig, secret, serviceConfigShape } from '../index';

const REQUIRED = { PORT: '3001', METRICS_PORT: '9101', DATABASE_URL: 'postgres://app:pw@db/auth' };
const schema = z.object({
  ...serviceConfigShape,
  KEY: secret({ minBytes: 32 }),
  ENABLED: flag().default(false),
});
const key = Buffer.alloc(32, 7).toString('base64url');

function failure(env: NodeJS.ProcessEnv): ConfigError {
  try {
    loadConfig(schema, env);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('the configuration was accepted');
}

describe('loadConfig', () => {
  it('turns text into values, fills in defaults and freezes', () => {
    const config = loadConfig(schema, { ...REQUIRED, KEY: key, ENABLED: 'true', LOG_LEVEL: '' });
    expect(config).toMatchObject({
      PORT: 3001,
      LOG_LEVEL: 'info',
      DATABASE_POOL_SIZE: 20,
      NODE_ENV: 'development',
      ENABLED: true,
    });
    expect(config.KEY).toEqual(Buffer.alloc(32, 7));
    expect(config.SERVICE_VERSION).toMatch(/^\d+\.\d+\.\d+/);
    expect(Object.isFrozen(config)).toBe(true);
  });

  it('lists every variable that is missing or wrong', () => {
    const { problems } = failure({ PORT: '70000', METRICS_PORT: 'x', ENABLED: 'maybe' });
    expect(Object.keys(problems).sort()).toEqual(['DATABASE_URL', 'ENABLED', 'KEY', 'METRICS_PORT', 'PORT']);
    expect(problems.KEY).toEqual(['is required']);
  });

  it('never shows a value', () => {
    const { message } = failure({
      ...REQUIRED,
      KEY: 'too+short+and+secret',
      DATABASE_URL: 'mysql://root:hunter2@db',
      LOG_LEVEL: 'hunter3',
    });
    expect(message).toContain('KEY');
    expect(message).not.toMatch(/hunter|too\+short/);
  });

  it.each([
    ['31 bytes', Buffer.alloc(31).toString('base64url')],
    ['standard base64', `${'+/'.repeat(22)}`],
    ['spaces', ` ${key}`],
  ])('refuses a secret of %s', (_what, text) => {
    expect(failure({ ...REQUIRED, KEY: text }).problems.KEY).toHaveLength(1);
  });
});
