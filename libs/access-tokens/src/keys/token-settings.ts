import { Persona } from '@platform/personas';
import { secret, tracedFetch } from '@platform/service-defaults';
import { z } from 'zod';
import { trustAuthService } from '../access-token-validator';
import type { AccessTokensOptions, OwnTokens } from '../access-token-validator';
import type { LegacyIssuer } from '../token/access-token-verifier';
import { KEY_ID_PATTERN } from '../token/parse-token';
import { staticKeys } from './keys';
import type { KeyMaterial, KeySource } from './keys';

/** A symmetric key and the name that tokens call it by. */
export interface HmacKey {
  kid: string;
  secret: Buffer;
}

/** An issuer from before this platform, with the keys of its tokens. */
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
 * HMAC keys given as `kid:base64url,kid:base64url,…`, each of at least 32 bytes and with a `kid` of its own.
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
 * Legacy issuers given as JSON: `[{"issuer": "…", "audience": "…", "keys": [{"kid": "…", "secret":
 * "base64url"}]}]`. A key without `kid` verifies the tokens that name none.
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

/** The value of a JSON text; undefined when it is none. */
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

/** What every service reads to know the tokens it accepts; spread it into the service's own schema. */
export const tokenConfigShape = {
  TOKEN_ISSUER: name,
  TOKEN_AUDIENCE: name,
  ACCESS_TOKEN_HMAC_KEY: hmacSecret,
  ACCESS_TOKEN_HMAC_KEY_ID: keyId,
  /**
   * Further HS256 keys that verify but never sign: the one before, or the one to come while it is being
   * rolled out.
   */
  ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: hmacKeyList().default([]),
  /** Issuers from before this platform whose tokens are still accepted. */
  LEGACY_ISSUERS: legacyIssuerSettings().default([]),
};

export type TokenConfig = z.output<z.ZodObject<typeof tokenConfigShape>>;

/**
 * The tokens that configuration alone says a service accepts; asymmetric keys come from elsewhere and are
 * combined with `keys`.
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
 * The current key and the others. The others may repeat it, so that one list can stay the same throughout a
 * rotation; another secret under its key id is a mistake that the key ring refuses.
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

/** What a service reads to accept the tokens of auth-service; spread it into the service's own schema. */
export const authServiceConfigShape = {
  ...tokenConfigShape,
  /** Where public keys and the revocation feed are read. */
  AUTH_SERVICE_URL: z.url({ protocol: /^https?$/ }),
  /** The service's own identity, with which it reads the feed. */
  SERVICE_APPLICATION_KEY: z.string().min(1),
  SERVICE_SHARED_SECRET: z.string().min(1),
  SERVICE_USER_NAME: z.string().min(1),
};

type AuthServiceConfig = z.output<z.ZodObject<typeof authServiceConfigShape>>;

/**
 * The identity of a service, with which it asks auth-service for tokens of its own: what `TokenProvider` of
 * the client library takes.
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
 * The options of a service that accepts the tokens of auth-service: its configured and its published keys,
 * and its revocations, which are read with tokens from `provideTokens`.
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
