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
   * off; negotiate: Kerberos tickets over SPNEGO; trusted-header: a reverse proxy has authenticated the user.
   */
  WINDOWS_AUTHENTICATION: z.enum(['off', 'negotiate', 'trusted-header']).default('off'),
  /** The one realm whose users are known. */
  WINDOWS_REALM: z
    .string()
    .regex(/^[A-Za-z0-9.-]{1,255}$/, 'must be a Kerberos realm')
    .optional(),
  /** negotiate: whose tickets are accepted, `HTTP@host`. */
  WINDOWS_SERVICE_PRINCIPAL: z
    .string()
    .regex(/^HTTP@[A-Za-z0-9.-]{1,255}$/, 'must be HTTP@host')
    .optional(),
  /**
   * negotiate: the keytab. Read by the Kerberos library itself; named here so that its absence is told at
   * boot.
   */
  KRB5_KTNAME: z.string().min(1).optional(),
  /** negotiate: tickets judged at once. */
  WINDOWS_TICKET_CONCURRENCY: z.coerce.number().int().min(1).max(64).default(2),
  /** trusted-header: where the proxy writes `user@REALM`. */
  WINDOWS_PROXY_USER_HEADER: headerName.default('x-remote-user'),
  /** trusted-header: where it writes its secret. */
  WINDOWS_PROXY_SECRET_HEADER: headerName.default('x-proxy-secret'),
  WINDOWS_PROXY_SECRET: z
    .string()
    .regex(/^[\x21-\x7e]{32,1024}$/, 'must be 32 to 1,024 visible ASCII characters')
    .optional(),
  /**
   * The application of Windows sign-ins that send no X-Application-Key; without one they get no refresh
   * token.
   */
  WINDOWS_FLOW_DEFAULT_APPLICATION: z.string().min(1).max(200).optional(),
};

export type WindowsConfig = Readonly<z.output<z.ZodObject<typeof windowsSettings>>>;

const REQUIRED = {
  off: [],
  negotiate: ['WINDOWS_REALM', 'WINDOWS_SERVICE_PRINCIPAL', 'KRB5_KTNAME'],
  'trusted-header': ['WINDOWS_REALM', 'WINDOWS_PROXY_SECRET'],
} as const satisfies Record<WindowsConfig['WINDOWS_AUTHENTICATION'], readonly (keyof WindowsConfig)[]>;

/** The variables that the chosen mode needs and that are missing. */
export function missingWindowsSettings(config: WindowsConfig): readonly (keyof WindowsConfig)[] {
  return REQUIRED[config.WINDOWS_AUTHENTICATION].filter((name) => config[name] === undefined);
}

export const AUTH_CONFIG = Symbol('auth-service configuration');

const webUrl = z.url({ protocol: /^https?$/ });
const seconds = z.coerce.number().int().positive();
const requestsPerMinute = z.coerce.number().int().min(1).max(1_000_000);
const keyId = z.string().regex(/^[\w.-]{1,64}$/, 'must match [A-Za-z0-9_.-]{1,64}');

const YEAR_SECONDS = 365 * 24 * 60 * 60;

/** Variables of single sign-on that have no default. */
const OPENID_VARIABLES = [
  'OPENID_ISSUER',
  'OPENID_CLIENT_ID',
  'OPENID_CLIENT_SECRET',
  'OPENID_REDIRECT_URI',
] as const;

/**
 * Everything this service reads from its environment. Keys and secrets have no defaults: boot fails without
 * them.
 */
export const authConfigSchema = z
  .object({
    ...serviceConfigShape,
    PORT: serviceConfigShape.PORT.default(3001),
    METRICS_PORT: serviceConfigShape.METRICS_PORT.default(9101),
    ...tokenConfigShape,
    /** How access tokens are signed when a request does not say (only POST /auth/token/refresh can). */
    ACCESS_TOKEN_DEFAULT_SIGNING: z.enum(['hmac', 'asymmetric']).default('hmac'),
    /** Which of the asymmetric keys signs. */
    ASYMMETRIC_SIGNING_ALGORITHM: z.enum(['ES256', 'RS256']).default('ES256'),
    /** How often the asymmetric keys are read again: at most a minute, because rotation counts on it. */
    SIGNING_KEYS_RELOAD_MS: z.coerce.number().int().min(50).max(60_000).default(30_000),
    REFRESH_TOKEN_HMAC_KEY: secret({ minBytes: 32 }),
    REFRESH_TOKEN_HMAC_KEY_ID: keyId,
    /** Further keys that verify refresh tokens but never sign them. */
    REFRESH_TOKEN_PREVIOUS_HMAC_KEYS: hmacKeyList().default([]),
    ...sealingKeyShape,
    ...cursorConfigShape,
    /** Each identity store may live elsewhere; by default all are schemas in the service's own database. */
    PERSON_DIRECTORY_DATABASE_URL: postgresAddresses.optional(),
    INTERNAL_LEGACY_DATABASE_URL: postgresAddresses.optional(),
    SERVICE_PROVIDERS_DATABASE_URL: postgresAddresses.optional(),
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
    /** Sign-ins of one user in an application, exchanges and refreshes of one session, in an hour at each
     *  replica; 0: no limit. */
    TOKENS_PER_HOUR: z.coerce.number().int().min(0).max(1_000_000).default(3_600),
    /** Refreshes of one session in an hour; 0: no limit. */
    REFRESH_TOKENS_PER_HOUR: z.coerce.number().int().min(0).max(10_000).default(300),
    /** Sessions with refresh tokens that one user may have in one application; the oldest end beyond. */
    SESSIONS_PER_USER: z.coerce.number().int().min(1).max(100_000).default(1_000),
    REVOCATION_WRITE_POLICY: z.enum(['any-token', 'self-or-admin']).default('any-token'),
    /** Revocations a minute that a caller who is no administrator may set about tokens that are not its
     *  own. Technicians without an account count their own too, except sessions. */
    REVOCATIONS_PER_MINUTE: z.coerce.number().int().min(1).max(100_000).default(100),
    /** How many of them may be kept at a time for one caller. */
    REVOCATIONS_PER_CALLER: z.coerce.number().int().min(1).max(1_000_000).default(10_000),
    /**
     * The same for all callers of one application together: who may name technicians without an account may
     * name any number of them.
     */
    REVOCATIONS_PER_MINUTE_PER_APPLICATION: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
    /** How many of them may be kept at a time for all callers of one application together. */
    REVOCATIONS_PER_APPLICATION: z.coerce.number().int().min(1).max(2_000_000).default(100_000),
    /** How many single tokens of its own, refresh tokens among them, a caller may have revoked at a time. */
    REVOCATIONS_OWN_PER_CALLER: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
    /** User names of the services, separated by commas: only administrators may revoke their tokens. */
    SERVICE_SUBJECTS: z
      .string()
      .default('svc.platform')
      .transform((list) =>
        list
          .split(',')
          .map((name) => userNameKey(name.trim()))
          .filter((name) => name !== ''),
      ),
    /**
     * The application of password logins that send no X-Application-Key; without one they get no refresh
     * token.
     */
    USER_FLOW_DEFAULT_APPLICATION: z.string().min(1).max(200).optional(),
    /**
     * Proxies whose X-Forwarded-For is believed: addresses and CIDR ranges, separated by commas. None unless
     * given.
     */
    TRUSTED_PROXIES: z.string().transform(readTrustedProxies).optional(),
    /** Token requests a minute that one address (IPv6: one /64 network) may make; no limit unless given. */
    TOKEN_RATE_LIMIT_PER_ADDRESS: requestsPerMinute.optional(),
    /** Requests a minute that an application may make which proves itself; no limit unless given. */
    TOKEN_RATE_LIMIT_PER_APPLICATION: requestsPerMinute.optional(),
    /** How long the audit trail is kept. The database refuses less than 30 days. */
    AUDIT_RETENTION_DAYS: z.coerce.number().int().min(30).max(36_500).default(400),
    ...windowsSettings,
    /**
     * Single sign-on with an OpenID provider: the first four together, or none of them. The redirect URI is
     * the public address of POST /auth/token/openId, exactly as registered with the provider.
     */
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
    /** Sign-ins that may wait for their users at a time, in all; each does so for ten minutes at most. */
    OPENID_WAITING_SIGN_INS: z.coerce.number().int().min(1).max(10_000_000).default(100_000),
    /** The same for one address (IPv6: one /48 network). */
    OPENID_WAITING_SIGN_INS_PER_ADDRESS: z.coerce.number().int().min(1).max(10_000_000).default(2_000),
    /** Longest wait for one answer of the provider; a sign-in asks it up to three times. */
    OPENID_TIMEOUT_MS: z.coerce.number().int().min(10).max(30_000).default(3_000),
    /**
     * Allows http for issuer and redirect URI, with a cookie that works there. For development; refused in
     * production.
     */
    OPENID_HTTP_ALLOWED: flag().default(false),
    /**
     * Password hashes computed at once; unless given, one processor is left to everybody who does not log in.
     */
    PASSWORD_HASH_CONCURRENCY: z.coerce
      .number()
      .int()
      .min(1)
      .max(64)
      .default(Math.max(1, availableParallelism() - 1)),
    /** Logins that may wait for a hash; more get 503, those of the network with the most waiting first. */
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

/** The keys of refresh tokens as configuration has them. */
export interface RefreshKeyConfig {
  REFRESH_TOKEN_HMAC_KEY: Buffer;
  REFRESH_TOKEN_HMAC_KEY_ID: string;
  REFRESH_TOKEN_PREVIOUS_HMAC_KEYS: readonly HmacKey[];
}

/** Every key that verifies HS256 access tokens of ours; the first one signs. */
export function accessTokenKeys(config: TokenConfig): HmacKey[] {
  const current = { kid: config.ACCESS_TOKEN_HMAC_KEY_ID, secret: config.ACCESS_TOKEN_HMAC_KEY };
  return withoutRepetition(current, config.ACCESS_TOKEN_PREVIOUS_HMAC_KEYS);
}

/** Every key that verifies refresh tokens; the first one signs. */
export function refreshTokenKeys(config: RefreshKeyConfig): HmacKey[] {
  const current = { kid: config.REFRESH_TOKEN_HMAC_KEY_ID, secret: config.REFRESH_TOKEN_HMAC_KEY };
  return withoutRepetition(current, config.REFRESH_TOKEN_PREVIOUS_HMAC_KEYS);
}

/**
 * True when a secret of `some` is also one of `others`: then a token of one kind could pass for the other.
 */
export function sharesSecret(some: readonly HmacKey[], others: readonly HmacKey[]): boolean {
  return some.some(({ secret: one }) => others.some(({ secret: other }) => one.equals(other)));
}

/** True when no key id names two keys. */
export function hasDistinctKeyIds(keys: readonly HmacKey[]): boolean {
  return new Set(keys.map(({ kid }) => kid)).size === keys.length;
}
