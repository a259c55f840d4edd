import { availableParallelism } from 'node:os';
import { hmacKeyList, tokenConfigShape, withoutRepetition } from '@platform/access-tokens';
import type { HmacKey, TokenConfig } from '@platform/access-tokens';
import {
  cursorConfigShape,
  flag,
  postgresAddresses,
  secret,
  serviceConfigShape,
} from '@platform/service-defaults';
import { z } from 'zod';
import { trustedProxies } from './audit/client-address';
import { userNameKey } from './identity/identity';
import { checkSealingKeys, sealingKeyShape } from './keys/sealing-keys';

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,100}$/, 'must be the name of a header')
  .transform((name) => name.toLowerCase());

/** Environment variables of Windows authentication. */
export const windowsSettings = {
  /**
   * `off`; `negotiate`: Kerberos tickets over SPNEGO; `trusted-header`: a reverse proxy authenticates the
   * user.
   */
  WINDOWS_AUTHENTICATION: z.enum(['off', 'negotiate', 'trusted-header']).default('off'),
  /** The only Kerberos realm whose users are accepted. */
  WINDOWS_REALM: z
    .string()
    .regex(/^[A-Za-z0-9.-]{1,255}$/, 'must be a Kerberos realm')
    .optional(),
  /** negotiate: the service principal that tickets must be issued for, `HTTP@host`. */
  WINDOWS_SERVICE_PRINCIPAL: z
    .string()
    .regex(/^HTTP@[A-Za-z0-9.-]{1,255}$/, 'must be HTTP@host')
    .optional(),
  /**
   * negotiate: path of the keytab. The Kerberos library reads the variable itself; it is declared here so
   * that boot fails if it is missing.
   */
  KRB5_KTNAME: z.string().min(1).optional(),
  /** negotiate: maximum tickets verified at the same time. */
  WINDOWS_TICKET_CONCURRENCY: z.coerce.number().int().min(1).max(64).default(2),
  /** trusted-header: header in which the proxy sends `user@REALM`. */
  WINDOWS_PROXY_USER_HEADER: headerName.default('x-remote-user'),
  /** trusted-header: header in which the proxy sends its secret. */
  WINDOWS_PROXY_SECRET_HEADER: headerName.default('x-proxy-secret'),
  WINDOWS_PROXY_SECRET: z
    .string()
    .regex(/^[\x21-\x7e]{32,1024}$/, 'must be 32 to 1,024 visible ASCII characters')
    .optional(),
  /** Application of Windows sign-ins without X-Application-Key. If unset, they get no refresh token. */
  WINDOWS_FLOW_DEFAULT_APPLICATION: z.string().min(1).max(200).optional(),
};

export type WindowsConfig = Readonly<z.output<z.ZodObject<typeof windowsSettings>>>;

const REQUIRED = {
  off: [],
  negotiate: ['WINDOWS_REALM', 'WINDOWS_SERVICE_PRINCIPAL', 'KRB5_KTNAME'],
  'trusted-header': ['WINDOWS_REALM', 'WINDOWS_PROXY_SECRET'],
} as const satisfies Record<WindowsConfig['WINDOWS_AUTHENTICATION'], readonly (keyof WindowsConfig)[]>;

/** Returns the variables that the chosen mode requires and that are not set. */
export function missingWindowsSettings(config: WindowsConfig): readonly (keyof WindowsConfig)[] {
  return REQUIRED[config.WINDOWS_AUTHENTICATION].filter((name) => config[name] === undefined);
}

export const AUTH_CONFIG = Symbol('auth-service configuration');

const webUrl = z.url({ protocol: /^https?$/ });
const seconds = z.coerce.number().int().positive();
const requestsPerMinute = z.coerce.number().int().min(1).max(1_000_000);
const keyId = z.string().regex(/^[\w.-]{1,64}$/, 'must match [A-Za-z0-9_.-]{1,64}');

const YEAR_SECONDS = 365 * 24 * 60 * 60;

/** Single sign-on variables without a default. */
const OPENID_VARIABLES = [
  'OPENID_ISSUER',
  'OPENID_CLIENT_ID',
  'OPENID_CLIENT_SECRET',
  'OPENID_REDIRECT_URI',
] as const;

/** Every environment variable of this service. Keys and secrets have no default: boot fails without them. */
export const authConfigSchema = z
  .object({
    ...serviceConfigShape,
    PORT: serviceConfigShape.PORT.default(3001),
    METRICS_PORT: serviceConfigShape.METRICS_PORT.default(9101),
    ...tokenConfigShape,
    /** How access tokens are signed by default. Only POST /auth/token/refresh lets a request choose. */
    ACCESS_TOKEN_DEFAULT_SIGNING: z.enum(['hmac', 'asymmetric']).default('hmac'),
    /** Algorithm whose active key signs asymmetric tokens. */
    ASYMMETRIC_SIGNING_ALGORITHM: z.enum(['ES256', 'RS256']).default('ES256'),
    /** Interval between reloads of the asymmetric keys, in ms. Key rotation relies on at most 60 s. */
    SIGNING_KEYS_RELOAD_MS: z.coerce.number().int().min(50).max(60_000).default(30_000),
    REFRESH_TOKEN_HMAC_KEY: secret({ minBytes: 32 }),
    REFRESH_TOKEN_HMAC_KEY_ID: keyId,
    /** Additional keys that verify refresh tokens but never sign them. */
    REFRESH_TOKEN_PREVIOUS_HMAC_KEYS: hmacKeyList().default([]),
    ...sealingKeyShape,
    ...cursorConfigShape,
    /** Databases of the identity stores. Unset: the store is a schema in the service's own database. */
    PERSON_DIRECTORY_DATABASE_URL: postgresAddresses.optional(),
    INTERNAL_LEGACY_DATABASE_URL: postgresAddresses.optional(),
    SERVICE_PROVIDERS_DATABASE_URL: postgresAddresses.optional(),
    CUSTOMERS_SERVICE_URL: webUrl,
    CUSTOMERS_SERVICE_TIMEOUT_MS: z.coerce.number().int().min(10).max(60_000).default(2_000),
    /**
     * Lets the `bearerTokenOverride` query parameter of POST /auth/token/bearer replace the Authorization
     * header. For tests; refused in production.
     */
    BEARER_TOKEN_OVERRIDE_ENABLED: flag().default(false),
    /** Maximum age of a sign-in (`auth_time`) whose access tokens may be exchanged, in seconds. */
    BEARER_MAX_AGE: seconds.default(YEAR_SECONDS),
    /** Maximum age of a sign-in (`auth_time`) whose refresh tokens may be used, in seconds. */
    REFRESH_MAX_AGE: seconds.default(YEAR_SECONDS),
    /** Maximum time that a refresh token may stay unused, in seconds. Unset: no limit. */
    REFRESH_IDLE: seconds.optional(),
    /**
     * Per replica and hour: maximum sign-ins of one user in one application, maximum exchanges of one
     * session, and maximum refreshes of one session. 0: no limit.
     */
    TOKENS_PER_HOUR: z.coerce.number().int().min(0).max(1_000_000).default(3_600),
    /** Maximum refreshes of one session per hour, over all replicas. 0: no limit. */
    REFRESH_TOKENS_PER_HOUR: z.coerce.number().int().min(0).max(10_000).default(300),
    /**
     * Maximum live sessions with refresh tokens per user and application. Beyond this number, the oldest are
     * ended.
     */
    SESSIONS_PER_USER: z.coerce.number().int().min(1).max(100_000).default(1_000),
    REVOCATION_WRITE_POLICY: z.enum(['any-token', 'self-or-admin']).default('any-token'),
    /**
     * Maximum revocations per minute that a non-administrator may set on tokens of others. For a technician
     * without an account, revocations of own tokens count too, except of sessions.
     */
    REVOCATIONS_PER_MINUTE: z.coerce.number().int().min(1).max(100_000).default(100),
    /** Maximum stored revocations of tokens of others per caller who is not an administrator. */
    REVOCATIONS_PER_CALLER: z.coerce.number().int().min(1).max(1_000_000).default(10_000),
    /**
     * Maximum revocations per minute for all callers of one application together, of the kind that
     * REVOCATIONS_PER_MINUTE counts. An application can name any number of technicians without an account, so
     * a limit per caller does not bound it.
     */
    REVOCATIONS_PER_MINUTE_PER_APPLICATION: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
    /**
     * Maximum stored revocations for all callers of one application together, of the kind that
     * REVOCATIONS_PER_MINUTE counts.
     */
    REVOCATIONS_PER_APPLICATION: z.coerce.number().int().min(1).max(2_000_000).default(100_000),
    /** Maximum stored revocations of a caller's own single tokens, refresh tokens included. */
    REVOCATIONS_OWN_PER_CALLER: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
    /**
     * Comma-separated user names of the services. Only administrators and the service itself may revoke their
     * tokens.
     */
    SERVICE_SUBJECTS: z
      .string()
      .default('svc.platform')
      .transform((list) =>
        list
          .split(',')
          .map((name) => userNameKey(name.trim()))
          .filter((name) => name !== ''),
      ),
    /** Application of password logins without X-Application-Key. If unset, they get no refresh token. */
    USER_FLOW_DEFAULT_APPLICATION: z.string().min(1).max(200).optional(),
    /** Proxies whose X-Forwarded-For is trusted: comma-separated addresses and CIDR ranges. Unset: none. */
    TRUSTED_PROXIES: z.string().transform(readTrustedProxies).optional(),
    /** Maximum token requests per minute from one address (IPv6: one /64 network). Unset: no limit. */
    TOKEN_RATE_LIMIT_PER_ADDRESS: requestsPerMinute.optional(),
    /** Maximum requests per minute of one authenticated application. Unset: no limit. */
    TOKEN_RATE_LIMIT_PER_APPLICATION: requestsPerMinute.optional(),
    /** Retention of the audit trail, in days. The database refuses less than 30. */
    AUDIT_RETENTION_DAYS: z.coerce.number().int().min(30).max(36_500).default(400),
    ...windowsSettings,
    /**
     * Single sign-on with an OpenID provider. Set the next four variables together or not at all. The
     * redirect URI is the public address of POST /auth/token/openId, exactly as registered with the provider.
     */
    OPENID_ISSUER: webUrl.optional(),
    OPENID_CLIENT_ID: z.string().min(1).max(500).optional(),
    OPENID_CLIENT_SECRET: z.string().min(16).max(1_024).optional(),
    OPENID_REDIRECT_URI: webUrl.optional(),
    OPENID_SCOPE: z
      .string()
      .regex(/^openid( [\w:/.-]+)*$/, 'must be scopes separated by single spaces, openid first')
      .default('openid'),
    /** Application of single sign-ons without X-Application-Key. If unset, they get no refresh token. */
    OPENID_DEFAULT_APPLICATION: z.string().min(1).max(200).optional(),
    /** Maximum sign-ins that wait for their users at a time. Each waits for at most ten minutes. */
    OPENID_WAITING_SIGN_INS: z.coerce.number().int().min(1).max(10_000_000).default(100_000),
    /** Maximum sign-ins of one address (IPv6: one /48 network) that wait for their users at a time. */
    OPENID_WAITING_SIGN_INS_PER_ADDRESS: z.coerce.number().int().min(1).max(10_000_000).default(2_000),
    /** Timeout of one request to the provider, in ms. A sign-in sends up to three. */
    OPENID_TIMEOUT_MS: z.coerce.number().int().min(10).max(30_000).default(3_000),
    /**
     * Allows http for the issuer and the redirect URI, and sets a cookie that works over http. For
     * development; refused in production.
     */
    OPENID_HTTP_ALLOWED: flag().default(false),
    /**
     * Maximum password hashes computed at the same time. The default leaves one processor free for all other
     * requests.
     */
    PASSWORD_HASH_CONCURRENCY: z.coerce
      .number()
      .int()
      .min(1)
      .max(64)
      .default(Math.max(1, availableParallelism() - 1)),
    /**
     * Maximum logins that wait for a hash. Beyond this number a login gets 503; the network with the most
     * waiting logins is refused first.
     */
    PASSWORD_HASH_QUEUE: z.coerce.number().int().min(0).max(10_000).default(100),
  })
  .superRefine(checkSealingKeys)
  .refine((config) => !(config.BEARER_TOKEN_OVERRIDE_ENABLED && config.NODE_ENV === 'production'), {
    path: ['BEARER_TOKEN_OVERRIDE_ENABLED'],
    message: 'must not be enabled in production',
  })
  .refine((config) => !sharesSecret(accessTokenKeys(config), refreshTokenKeys(config)), {
    path: ['REFRESH_TOKEN_HMAC_KEY'],
    message: 'and its previous keys must not be keys of access tokens',
  })
  .refine((config) => hasDistinctKeyIds(accessTokenKeys(config)), {
    path: ['ACCESS_TOKEN_PREVIOUS_HMAC_KEYS'],
    message: 'must not hold another key under the id of the current one',
  })
  .refine((config) => hasDistinctKeyIds(refreshTokenKeys(config)), {
    path: ['REFRESH_TOKEN_PREVIOUS_HMAC_KEYS'],
    message: 'must not hold another key under the id of the current one',
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

function readTrustedProxies(list: string, context: z.RefinementCtx): ReturnType<typeof trustedProxies> {
  try {
    return trustedProxies(list);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    context.addIssue({ code: 'custom', message: 'must be addresses or CIDR ranges separated by commas' });
    return z.NEVER;
  }
}

export type AuthConfig = Readonly<z.output<typeof authConfigSchema>>;

/** The configured keys of refresh tokens. */
export interface RefreshKeyConfig {
  REFRESH_TOKEN_HMAC_KEY: Buffer;
  REFRESH_TOKEN_HMAC_KEY_ID: string;
  REFRESH_TOKEN_PREVIOUS_HMAC_KEYS: readonly HmacKey[];
}

/** Returns every key that verifies this service's HS256 access tokens. The first one signs. */
export function accessTokenKeys(config: TokenConfig): HmacKey[] {
  const current = { kid: config.ACCESS_TOKEN_HMAC_KEY_ID, secret: config.ACCESS_TOKEN_HMAC_KEY };
  return withoutRepetition(current, config.ACCESS_TOKEN_PREVIOUS_HMAC_KEYS);
}

/** Returns every key that verifies refresh tokens. The first one signs. */
export function refreshTokenKeys(config: RefreshKeyConfig): HmacKey[] {
  const current = { kid: config.REFRESH_TOKEN_HMAC_KEY_ID, secret: config.REFRESH_TOKEN_HMAC_KEY };
  return withoutRepetition(current, config.REFRESH_TOKEN_PREVIOUS_HMAC_KEYS);
}

/** Returns true if both lists contain the same secret. A token of one kind could then pass for the other. */
export function sharesSecret(some: readonly HmacKey[], others: readonly HmacKey[]): boolean {
  return some.some(({ secret: one }) => others.some(({ secret: other }) => one.equals(other)));
}

/** Returns true if no two keys have the same id. */
export function hasDistinctKeyIds(keys: readonly HmacKey[]): boolean {
  return new Set(keys.map(({ kid }) => kid)).size === keys.length;
}
