import type { Clock } from '@platform/time';
import { SYSTEM_CLOCK } from '@platform/time';
import { authServiceAddress } from '../auth-service-address';
import { TokenVerificationUnavailableError } from '../token/access-token-error';
import { keysFromJwks } from './jwks-document';
import { KeyRing } from './key-ring';
import type { KeyQuery, KeySource } from './key-source';
import type { VerificationKey } from './verification-key';

export interface JwksKeysOptions {
  /** Address of the JWK Set. Configuration, never a token's `jku`. */
  url: string;
  /** Whose keys they are; left out: the platform's own issuer's. Tokens of others never cause a request. */
  issuer?: string;
  fetch?: typeof globalThis.fetch;
  clock?: Clock;
  /** After this the set is read again in the background; after twice as long, before it is used. Default 30 s, so that a
   *  removed key is refused within 60 s. */
  refreshIntervalMs?: number;
  /** Shortest time between two requests, whatever key ids tokens name. Default 5 s. */
  cooldownMs?: number;
  /** Longest wait for an answer. Default 2 s. */
  timeoutMs?: number;
  /** How long known keys serve while the address is out of reach. Default 15 min. */
  maxStaleMs?: number;
}

const DEFAULTS = {
  refreshIntervalMs: 30_000,
  cooldownMs: 5_000,
  timeoutMs: 2_000,
  maxStaleMs: 15 * 60_000,
} as const;
const MAX_DOCUMENT_BYTES = 256 * 1024;

/** Keys from a JWK Set over HTTP: cached, read again in time and when a token names an unknown key (rate-limited, one
 *  request at a time, bounded wait). RS256 and ES256 only: a published key is never a shared secret. */
export function jwksKeys(options: JwksKeysOptions): KeySource {
  return new JwksKeys(options);
}

/** The asymmetric keys that auth-service publishes at `/auth/.well-known/jwks.json`; see `jwksKeys`. */
export function authServiceKeys({
  authServiceUrl,
  ...options
}: { authServiceUrl: string } & Omit<JwksKeysOptions, 'url'>): KeySource {
  return jwksKeys({ ...options, url: authServiceAddress(authServiceUrl, 'auth/.well-known/jwks.json').href });
}

class JwksKeys implements KeySource {
  private readonly ring = new KeyRing();
  private readonly settings: typeof DEFAULTS & JwksKeysOptions;
  private readonly clock: Clock;
  private loadedAtMs = -Infinity;
  private askedAtMs = -Infinity;
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
    // "No such key" is an answer only when the set could be read; else the key may be the newest one.
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

  /** Reads the set, joins the reading under way, or does nothing within the cooldown. Never rejects. */
  private refresh(): Promise<void> {
    if (this.refreshing) return this.refreshing;
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.askedAtMs < this.settings.cooldownMs) return Promise.resolve();
    this.askedAtMs = nowMs;
    this.refreshing = this.load(nowMs)
      .catch((error: unknown) => {
        this.lastFailure = error;
      })
      .finally(() => {
        this.refreshing = null;
      });
    return this.refreshing;
  }

  private async load(askedAtMs: number): Promise<void> {
    const response = await (this.settings.fetch ?? globalThis.fetch)(this.settings.url, {
      headers: { accept: 'application/jwk-set+json, application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(this.settings.timeoutMs),
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`the JWK Set was answered with ${response.status}`);
    }
    const document: unknown = JSON.parse(await boundedText(response));
    this.ring.replace(keysFromJwks(document, this.settings.issuer));
    this.loadedAtMs = askedAtMs;
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
