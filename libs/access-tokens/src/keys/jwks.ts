import { types } from 'node:util';
import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import { z } from 'zod';
import { TokenVerificationUnavailableError } from '../token/access-token-error';
import { KEY_ID_PATTERN } from '../token/parse-token';
import { createVerificationKey, KeyRing } from './keys';
import type { KeyQuery, KeySource, VerificationKey } from './keys';

const ALGORITHM_OF_TYPE = { RSA: 'RS256', EC: 'ES256' } as const;

const jwk = z.looseObject({
  kty: z.enum(['RSA', 'EC']),
  kid: z.string().regex(KEY_ID_PATTERN),
  alg: z.enum(['RS256', 'ES256']).optional(),
  use: z.literal('sig').optional(),
  // RFC 7517, section 4.3: no duplicate operations.
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes('verify') && new Set(operations).size === operations.length)
    .optional(),
});
const jwks = z.object({ keys: z.array(z.unknown()).max(100) });

/**
 * Returns the keys of a JWK Set (RFC 7517) that can verify this issuer's tokens. As the RFC requires, skips
 * entries that are not understood, cannot be imported or must not be used: symmetric, weak, for encryption,
 * or without a usable `kid`.
 * @throws {Error} when the document is not a JWK Set, or two entries share a key id
 */
function keysFromJwks(document: unknown, issuer: string | undefined): VerificationKey[] {
  const keys = jwks.parse(document).keys.map((entry) => keyFromJwk(entry, issuer));
  return keys.filter((key) => key !== null);
}

function keyFromJwk(entry: unknown, issuer: string | undefined): VerificationKey | null {
  const read = jwk.safeParse(entry);
  if (!read.success) return null;
  const { kty, kid, alg } = read.data;
  if (alg !== undefined && alg !== ALGORITHM_OF_TYPE[kty]) return null;
  try {
    return createVerificationKey({
      kid,
      alg: ALGORITHM_OF_TYPE[kty],
      publicKey: read.data,
      ...(issuer === undefined ? {} : { issuer }),
    });
  } catch (error) {
    if (types.isNativeError(error)) return null;
    throw error;
  }
}

interface JwksKeysOptions {
  /** Address of the JWK Set. It comes from configuration, never from a token's `jku`. */
  url: string;
  /**
   * The issuer that owns the keys; the platform's own issuer by default. If set, tokens of other issuers
   * cause no request.
   */
  issuer?: string;
  fetch?: typeof globalThis.fetch;
  clock?: Clock;
  /**
   * Age, in milliseconds, at which the set is reloaded in the background. At twice this age it is reloaded
   * before its next use. Default 30 s, so that a removed key is refused within 60 s.
   */
  refreshIntervalMs?: number;
  /** Minimum time between two requests, however many unknown key ids tokens name. Default 5 s. */
  cooldownMs?: number;
  /** Request timeout. Default 2 s. */
  timeoutMs?: number;
  /** Maximum age of the cached keys while the address is unreachable. Default 15 min. */
  maxStaleMs?: number;
}

const DEFAULTS = {
  refreshIntervalMs: 30_000,
  cooldownMs: 5_000,
  timeoutMs: 2_000,
  maxStaleMs: 15 * 60_000,
} as const;
const MAX_DOCUMENT_BYTES = 256 * 1024;

/**
 * Returns the URL of a route of auth-service, below the path prefix of `authServiceUrl` if it has one.
 * @param path path without a leading slash
 */
export function authServiceAddress(authServiceUrl: string, path: string): URL {
  return new URL(path, authServiceUrl.endsWith('/') ? authServiceUrl : `${authServiceUrl}/`);
}

/**
 * Returns a source of the asymmetric keys that auth-service publishes at `/auth/.well-known/jwks.json`; see
 * `JwksKeys`.
 */
export function authServiceKeys({
  authServiceUrl,
  ...options
}: { authServiceUrl: string } & Omit<JwksKeysOptions, 'url'>): KeySource {
  const { href: url } = authServiceAddress(authServiceUrl, 'auth/.well-known/jwks.json');
  return new JwksKeys({ ...options, url });
}

/**
 * Caches the keys of a JWK Set that it reads over HTTP. Reloads the set when it is old and when a token names
 * an unknown key: one request at a time, with a cooldown and a timeout. RS256 and ES256 only, because a
 * published key cannot be a shared secret.
 */
export class JwksKeys implements KeySource {
  private readonly ring = new KeyRing();
  private readonly settings: typeof DEFAULTS & JwksKeysOptions;
  private readonly clock: Clock;
  private loadedAtMs = -Infinity;
  private requestedAtMs = -Infinity;
  private lastFailure: unknown = null;
  private refreshing: Promise<void> | null = null;

  constructor(options: JwksKeysOptions) {
    this.settings = { ...DEFAULTS, ...options } as typeof DEFAULTS & JwksKeysOptions;
    this.clock = options.clock ?? SYSTEM_CLOCK;
  }

  async findKey(query: KeyQuery): Promise<VerificationKey | null> {
    if (query.alg === 'HS256' || query.kid === undefined) return null;
    if (this.settings.issuer !== undefined && query.issuer !== this.settings.issuer) return null;
    if (this.ageMs >= 2 * this.settings.refreshIntervalMs) await this.refresh();
    const key = this.currentKey(query);
    if (key) return key;
    await this.refresh();
    const found = this.currentKey(query);
    // If the set could not be read, the key may be a new one, so it must not be reported as unknown.
    if (!found && this.lastFailure) throw this.unavailable();
    return found;
  }

  generation(): number | null {
    if (this.ageMs < this.settings.refreshIntervalMs) return this.ring.generation();
    void this.refresh();
    return this.ageMs < 2 * this.settings.refreshIntervalMs ? this.ring.generation() : null;
  }

  private get ageMs(): number {
    return this.clock.monotonicMs() - this.loadedAtMs;
  }

  private currentKey(query: KeyQuery): VerificationKey | null {
    if (this.ageMs > this.settings.maxStaleMs) throw this.unavailable();
    return this.ring.findKey(query);
  }

  private unavailable(): TokenVerificationUnavailableError {
    return new TokenVerificationUnavailableError('keys', { cause: this.lastFailure });
  }

  /** Reads the set, or joins the request in flight, or does nothing within the cooldown. Never rejects. */
  private refresh(): Promise<void> {
    if (this.refreshing) return this.refreshing;
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.requestedAtMs < this.settings.cooldownMs) return Promise.resolve();
    this.requestedAtMs = nowMs;
    this.refreshing = this.load(nowMs)
      .catch((error: unknown) => {
        this.lastFailure = error;
      })
      .finally(() => {
        this.refreshing = null;
      });
    return this.refreshing;
  }

  private async load(requestedAtMs: number): Promise<void> {
    const response = await (this.settings.fetch ?? globalThis.fetch)(this.settings.url, {
      headers: { accept: 'application/jwk-set+json, application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(this.settings.timeoutMs),
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`the request for the JWK Set failed with status ${response.status}`);
    }
    const document: unknown = JSON.parse(await boundedText(response));
    this.ring.replace(keysFromJwks(document, this.settings.issuer));
    this.loadedAtMs = requestedAtMs;
    this.lastFailure = null;
  }
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_DOCUMENT_BYTES) throw new Error(`the JWK Set is over ${MAX_DOCUMENT_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
