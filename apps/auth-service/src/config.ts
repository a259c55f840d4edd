import { availableParallelism } from 'node:os';
import { flag, secret, serviceConfigShape } from '@platform/service-defaults';
import { z } from 'zod';
import { missingWindowsSettings, windowsSettings } from './token/windows/windows-settings';

/** Injection token of the service's configuration. */
export const AUTH_CONFIG = Symbol('auth-service configuration');

const postgresUrl = z.url({ protocol: /^postgres(ql)?$/ });
const webUrl = z.url({ protocol: /^https?$/ });
const seconds = z.coerce.number().int().positive();
const keyId = z.string().regex(/^[\w.-]{1,64}$/, 'must match [A-Za-z0-9_.-]{1,64}');

const YEAR_SECONDS = 365 * 24 * 60 * 60;

/** Variables of single sign-on that have no default. */
const OPENID_VARIABLES = [
  'OPENID_ISSUER',
  'OPENID_CLIENT_ID',
  'OPENID_CLIENT_SECRET',
  'OPENID_REDIRECT_URI',
] as const;

/** Everything this service reads from its environment. Keys and secrets have no defaults: boot fails without them. */
export const authConfigSchema = z
  .object({
    ...serviceConfigShape,
    PORT: serviceConfigShape.PORT.default(3001),
    METRICS_PORT: serviceConfigShape.METRICS_PORT.default(9101),
    TOKEN_ISSUER: z.string().min(1).max(500),
    TOKEN_AUDIENCE: z.string().min(1).max(500),
    ACCESS_TOKEN_HMAC_KEY: secret({ minBytes: 32 }),
    ACCESS_TOKEN_HMAC_KEY_ID: keyId,
    REFRESH_TOKEN_HMAC_KEY: secret({ minBytes: 32 }),
    REFRESH_TOKEN_HMAC_KEY_ID: keyId,
    /** AES-256-GCM key for application secrets and private signing keys. */
    SECRET_ENCRYPTION_KEY: secret({ minBytes: 32 }),
    /** Seals the cursors of the revocation list. */
    CURSOR_HMAC_KEY: secret({ minBytes: 32 }),
    /** Each identity store may live elsewhere; by default all are schemas in the service's own database. */
    PERSON_DIRECTORY_DATABASE_URL: postgresUrl.optional(),
    INTERNAL_LEGACY_DATABASE_URL: postgresUrl.optional(),
    SERVICE_PROVIDERS_DATABASE_URL: postgresUrl.optional(),
    CUSTOMERS_SERVICE_URL: webUrl,
    CUSTOMERS_SERVICE_TIMEOUT_MS: z.coerce.number().int().min(10).max(60_000).default(2_000),
    /** Lets the query of POST /auth/token/bearer replace the header. For tests; refused in production. */
    BEARER_TOKEN_OVERRIDE_ENABLED: flag().default(false),
    /** Longest time since the user proved who they are for which a bearer token is exchanged, in seconds. */
    BEARER_MAX_AGE: seconds.default(YEAR_SECONDS),
    /** The same for refreshing, in seconds. */
    REFRESH_MAX_AGE: seconds.default(YEAR_SECONDS),
    /** Longest time for which a refresh token may lie unused, in seconds; off unless given. */
    REFRESH_IDLE: seconds.optional(),
    REVOCATION_WRITE_POLICY: z.enum(['any-token', 'self-or-admin']).default('any-token'),
    /** The application of password logins that send no X-Application-Key; without one they get no refresh token. */
    USER_FLOW_DEFAULT_APPLICATION: z.string().min(1).max(200).optional(),
    ...windowsSettings,
    /** Single sign-on with an OpenID provider: the first four together, or none of them. The redirect URI is the public address
     *  of POST /auth/token/openId, exactly as registered with the provider. */
    OPENID_ISSUER: webUrl.optional(),
    OPENID_CLIENT_ID: z.string().min(1).max(500).optional(),
    OPENID_CLIENT_SECRET: z.string().min(16).max(1_024).optional(),
    OPENID_REDIRECT_URI: webUrl.optional(),
    OPENID_SCOPE: z
      .string()
      .regex(/^openid( [\w:/.-]+)*$/, 'must be scopes separated by single spaces, openid first')
      .default('openid'),
    /** The application of sign-ins that send no X-Application-Key; without one they get no refresh token. */
    OPENID_DEFAULT_APPLICATION: z.string().min(1).max(200).optional(),
    /** Longest wait for one answer of the provider; a sign-in asks it up to three times. */
    OPENID_TIMEOUT_MS: z.coerce.number().int().min(10).max(30_000).default(3_000),
    /** Allows http for issuer and redirect URI, with a cookie that works there. For development; refused in production. */
    OPENID_HTTP_ALLOWED: flag().default(false),
    /** Password hashes computed at once. */
    PASSWORD_HASH_CONCURRENCY: z.coerce.number().int().min(1).max(64).default(availableParallelism()),
    /** Logins that may wait for a hash; more get 503. */
    PASSWORD_HASH_QUEUE: z.coerce.number().int().min(0).max(10_000).default(100),
  })
  .refine((config) => config.SECRET_ENCRYPTION_KEY.length === 32, {
    path: ['SECRET_ENCRYPTION_KEY'],
    message: 'must hold exactly 32 bytes',
  })
  .refine((config) => !(config.BEARER_TOKEN_OVERRIDE_ENABLED && config.NODE_ENV === 'production'), {
    path: ['BEARER_TOKEN_OVERRIDE_ENABLED'],
    message: 'must not be enabled in production',
  })
  .refine((config) => !config.ACCESS_TOKEN_HMAC_KEY.equals(config.REFRESH_TOKEN_HMAC_KEY), {
    path: ['REFRESH_TOKEN_HMAC_KEY'],
    message: 'must not be the key of access tokens',
  })
  .superRefine((config, context) => {
    for (const name of missingWindowsSettings(config))
      context.addIssue({ code: 'custom', path: [name], message: 'is required' });
  })
  .superRefine((config, context) => {
    const missing = OPENID_VARIABLES.filter((name) => config[name] === undefined);
    if (missing.length === OPENID_VARIABLES.length) return;
    for (const name of missing) {
      const message = 'is required, because another variable of single sign-on is set';
      context.addIssue({ code: 'custom', path: [name], message });
    }
  })
  .superRefine((config, context) => {
    if (config.OPENID_HTTP_ALLOWED) return;
    for (const name of ['OPENID_ISSUER', 'OPENID_REDIRECT_URI'] as const) {
      if (config[name]?.startsWith('http://') !== true) continue;
      const message = 'must be https (for development: OPENID_HTTP_ALLOWED=true)';
      context.addIssue({ code: 'custom', path: [name], message });
    }
  })
  .refine((config) => !(config.OPENID_HTTP_ALLOWED && config.NODE_ENV === 'production'), {
    path: ['OPENID_HTTP_ALLOWED'],
    message: 'must not be enabled in production',
  });

export type AuthConfig = Readonly<z.output<typeof authConfigSchema>>;
