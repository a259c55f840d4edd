import { Persona } from '@platform/personas';
import { secret, tracedFetch } from '@platform/service-defaults';
import { z } from 'zod';
import { staticKeys } from '../keys/keys';
import type { KeyMaterial, KeySource } from '../keys/keys';
import { KEY_ID_PATTERN } from '../token/parse-token';
import { trustAuthService } from './access-token-validator';
import type { AccessTokensOptions, OwnTokens } from './access-token-validator';
import type { LegacyIssuer } from './access-token-verifier';

/** A symmetric key and its key id. */
export interface HmacKey {
  kid: string;
  secret: Buffer;
}

/** A legacy issuer with its keys. */
interface ConfiguredLegacyIssuer extends LegacyIssuer {
  keys: readonly { kid?: string | undefined; secret: Buffer }[];
}

const MIN_BYTES = 32;
const hmacSecret = secret({ minBytes: MIN_BYTES });
const name = z.string().min(1).max(500);
const keyId = z.string().regex(KEY_ID_PATTERN, 'must match [A-Za-z0-9_.-]{1,64}');

const legacyIssuerList = z.array(
  z.strictObject({
    issuer: name,
    audience: name,
    keys: z.array(z.strictObject({ kid: keyId.optional(), secret: hmacSecret })).min(1),
  }),
);

/**
 * Schema of HMAC keys written as `kid:base64url,kid:base64url,…`. Each key has at least 32 bytes and a unique
 * `kid`.
 */
export function hmacKeyList(): z.ZodType<readonly HmacKey[], string> {
  const list = z.string().transform((text, context): HmacKey[] => {
    const keys = text.split(',').map((entry) => readHmacKey(entry.trim()));
    const usable = keys.filter((key) => key !== null);
    if (usable.length < keys.length) {
      context.addIssue({
        code: 'custom',
        message: `must be kid:base64url pairs with commas in between, each key of at least ${MIN_BYTES} bytes`,
      });
      return z.NEVER;
    }
    return usable;
  });
  return list.refine((keys) => isDistinct(keys.map(({ kid }) => kid)), 'must not name one key id twice');
}

function readHmacKey(entry: string): HmacKey | null {
  const colon = entry.indexOf(':');
  const kid = keyId.safeParse(entry.slice(0, Math.max(colon, 0)));
  const bytes = hmacSecret.safeParse(entry.slice(colon + 1));
  return kid.success && bytes.success ? { kid: kid.data, secret: bytes.data } : null;
}

/**
 * Schema of legacy issuers written as JSON: `[{"issuer": "…", "audience": "…", "keys": [{"kid": "…",
 * "secret": "base64url"}]}]`. A key without `kid` verifies tokens without `kid`.
 */
function legacyIssuerSettings(): z.ZodType<readonly ConfiguredLegacyIssuer[], string> {
  const list = z.string().transform((text, context) => {
    const parsed = legacyIssuerList.safeParse(readJson(text), { reportInput: false });
    if (!parsed.success) {
      const where = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
      context.addIssue({
        code: 'custom',
        message: `must be a JSON list of legacy issuers (${where.join('; ')})`,
      });
      return z.NEVER;
    }
    return parsed.data;
  });
  return list.refine((all) => isDistinct(all.map(({ issuer }) => issuer)), 'must not name one issuer twice');
}

/** Returns the parsed value, or undefined if the text is not JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isDistinct(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}

/**
 * Environment variables that define which tokens a service accepts. Spread it into the service's own schema.
 */
export const tokenConfigShape = {
  TOKEN_ISSUER: name,
  TOKEN_AUDIENCE: name,
  ACCESS_TOKEN_HMAC_KEY: hmacSecret,
  ACCESS_TOKEN_HMAC_KEY_ID: keyId,
  /**
   * Further HS256 keys that verify but never sign: the previous key, or the next one while it is rolled out.
   */
  ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: hmacKeyList().default([]),
  /** Issuers that predate this platform and whose tokens are still accepted. */
  LEGACY_ISSUERS: legacyIssuerSettings().default([]),
};

export type TokenConfig = z.output<z.ZodObject<typeof tokenConfigShape>>;

/**
 * The accepted issuers and the keys that the configuration holds. Add asymmetric keys from other sources with
 * `combineKeys`.
 */
interface ConfiguredTokens {
  issuer: string;
  audience: string;
  legacyIssuers: readonly LegacyIssuer[];
  keys: KeySource;
}

/** @throws {RangeError} when two different keys of one issuer share a key id */
export function configuredTokens(config: TokenConfig): ConfiguredTokens {
  const current = { kid: config.ACCESS_TOKEN_HMAC_KEY_ID, secret: config.ACCESS_TOKEN_HMAC_KEY };
  const own = withoutRepetition(current, config.ACCESS_TOKEN_PREVIOUS_HMAC_KEYS);
  return {
    issuer: config.TOKEN_ISSUER,
    audience: config.TOKEN_AUDIENCE,
    legacyIssuers: config.LEGACY_ISSUERS.map(({ issuer, audience }) => ({ issuer, audience })),
    keys: staticKeys([
      ...own.map((key): KeyMaterial => ({ ...key, alg: 'HS256' })),
      ...config.LEGACY_ISSUERS.flatMap(legacyKeys),
    ]),
  };
}

/**
 * Returns the current key followed by the others, without a repetition of the current one. That way one list
 * can stay the same throughout a rotation. A different secret under the current key id is kept, and the key
 * ring then refuses it.
 */
export function withoutRepetition(current: HmacKey, others: readonly HmacKey[]): HmacKey[] {
  return [
    current,
    ...others.filter(({ kid, secret }) => kid !== current.kid || !secret.equals(current.secret)),
  ];
}

function legacyKeys({ issuer, keys }: ConfiguredLegacyIssuer): KeyMaterial[] {
  return keys.map(({ kid, secret }) => ({
    ...(kid === undefined ? {} : { kid }),
    issuer,
    alg: 'HS256',
    secret,
  }));
}

/**
 * Environment variables of a service that accepts tokens of auth-service. Spread it into the service's own
 * schema.
 */
export const authServiceConfigShape = {
  ...tokenConfigShape,
  /** Base address for public keys and the revocation feed. */
  AUTH_SERVICE_URL: z.url({ protocol: /^https?$/ }),
  /** The service's own identity, used to read the revocation feed. */
  SERVICE_APPLICATION_KEY: z.string().min(1),
  SERVICE_SHARED_SECRET: z.string().min(1),
  SERVICE_USER_NAME: z.string().min(1),
};

type AuthServiceConfig = z.output<z.ZodObject<typeof authServiceConfigShape>>;

/**
 * The identity with which a service requests its own tokens: the options of `TokenProvider` in
 * `@platform/auth-client`.
 */
interface ServiceIdentity {
  authServiceUrl: string;
  applicationKey: string;
  sharedSecret: string;
  persona: Persona;
  userName: string;
  fetch: typeof globalThis.fetch;
}

/**
 * Returns the options for accepting tokens of auth-service: configured keys, published keys and revocations.
 * The revocations are read with tokens from `provideTokens`.
 * @throws {RangeError} when two different keys of one issuer share a key id
 */
export function authServiceTokens(
  config: AuthServiceConfig,
  provideTokens: (identity: ServiceIdentity) => OwnTokens,
): AccessTokensOptions {
  const authServiceUrl = config.AUTH_SERVICE_URL;
  const ownTokens = provideTokens({
    authServiceUrl,
    applicationKey: config.SERVICE_APPLICATION_KEY,
    sharedSecret: config.SERVICE_SHARED_SECRET,
    persona: Persona.InternalPartner,
    userName: config.SERVICE_USER_NAME,
    fetch: tracedFetch,
  });
  return trustAuthService({ ...configuredTokens(config), authServiceUrl, ownTokens, fetch: tracedFetch });
}
