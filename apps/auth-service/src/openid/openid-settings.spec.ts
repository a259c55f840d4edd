import { randomBytes } from 'node:crypto';
import { ConfigError, loadConfig } from '@platform/service-defaults';
import { authConfigSchema } from '../config';
import { openIdSettingsOf } from './provider-metadata.client';

const key = (): string => randomBytes(32).toString('base64url');

const REQUIRED = {
  NODE_ENV: 'production',
  DATABASE_URL: 'postgres://127.0.0.1/auth',
  TOKEN_ISSUER: 'https://auth.platform.test',
  TOKEN_AUDIENCE: 'platform-test',
  ACCESS_TOKEN_HMAC_KEY: key(),
  ACCESS_TOKEN_HMAC_KEY_ID: 'a',
  REFRESH_TOKEN_HMAC_KEY: key(),
  REFRESH_TOKEN_HMAC_KEY_ID: 'r',
  SECRET_ENCRYPTION_KEY: key(),
  CURSOR_HMAC_KEY: key(),
  CUSTOMERS_SERVICE_URL: 'http://127.0.0.1:9',
};

const OPENID = {
  OPENID_ISSUER: 'https://login.example/tenant',
  OPENID_CLIENT_ID: 'auth-service',
  OPENID_CLIENT_SECRET: 'hunter2-hunter2-hunter2',
  OPENID_REDIRECT_URI: 'https://auth.platform.test/auth/token/openId',
};

const problemsOf = (environment: NodeJS.ProcessEnv): string[] => {
  try {
    loadConfig(authConfigSchema, environment);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).message).not.toContain('hunter2');
    return Object.keys((error as ConfigError).problems);
  }
};

describe('configuration of single sign-on', () => {
  it('is off unless it is set', () => {
    expect(openIdSettingsOf(loadConfig(authConfigSchema, REQUIRED))).toBeNull();
  });

  it('has defaults for settings that do not describe the provider', () => {
    expect(openIdSettingsOf(loadConfig(authConfigSchema, { ...REQUIRED, ...OPENID }))).toEqual({
      issuer: OPENID.OPENID_ISSUER,
      clientId: OPENID.OPENID_CLIENT_ID,
      clientSecret: OPENID.OPENID_CLIENT_SECRET,
      redirectUri: OPENID.OPENID_REDIRECT_URI,
      scope: 'openid',
      maxAgeSeconds: 365 * 24 * 60 * 60,
      timeoutMs: 3_000,
      httpAllowed: false,
    });
  });

  it.each(Object.keys(OPENID))('does not start without %s while the others are set', (name) => {
    expect(problemsOf({ ...REQUIRED, ...OPENID, [name]: '' })).toEqual([name]);
  });

  it.each(['OPENID_ISSUER', 'OPENID_REDIRECT_URI'])(
    'requires https for %s unless http is allowed',
    (name) => {
      const environment = { ...REQUIRED, ...OPENID, [name]: 'http://login.example' };
      expect(problemsOf(environment)).toEqual([name]);
      expect(problemsOf({ ...environment, NODE_ENV: 'development', OPENID_HTTP_ALLOWED: 'true' })).toEqual(
        [],
      );
    },
  );

  it('never allows http in production', () => {
    expect(problemsOf({ ...REQUIRED, ...OPENID, OPENID_HTTP_ALLOWED: 'true' })).toEqual([
      'OPENID_HTTP_ALLOWED',
    ]);
  });

  it('requires openid as the first scope', () => {
    expect(problemsOf({ ...REQUIRED, ...OPENID, OPENID_SCOPE: 'openid profile api://x/.default' })).toEqual(
      [],
    );
    expect(problemsOf({ ...REQUIRED, ...OPENID, OPENID_SCOPE: 'profile' })).toEqual(['OPENID_SCOPE']);
  });
});
