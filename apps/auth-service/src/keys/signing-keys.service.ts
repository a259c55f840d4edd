import { createPrivateKey } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { KeyRing, TokenVerificationUnavailableError, createVerificationKey } from '@platform/access-tokens';
import type { KeyQuery, KeySource, VerificationKey } from '@platform/access-tokens';
import { CLOCK, HealthRegistry, Metrics, problems } from '@platform/service-defaults';
import type { Sample } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { signingKey } from './compact-jws';
import type { SigningKey } from './compact-jws';
import { SecretBox } from './secret-box';
import { generateSigningKey, signingKeyPurpose } from './signing-key';
import { SigningKeysRepository } from './signing-keys.repository';
import type { UsableSigningKey } from './signing-keys.repository';

/** Maximum age of the published list, in ms. An older one is reloaded before it is served. */
const PUBLISHED_MAX_AGE_MS = 5_000;

/** A public key in the response of GET /auth/.well-known/jwks.json. */
export type PublishedKey = JsonWebKey & { kid: string; alg: string; use: 'sig' };

/** The asymmetric keys. They are stored in the database and reloaded periodically. */
@Injectable()
export class SigningKeys implements OnModuleInit, OnApplicationShutdown {
  private readonly ring = new KeyRing();
  /**
   * Every key that verifies tokens: next, active and retired. An unknown key id causes a reload, because
   * another replica may have started to use a new key.
   */
  readonly verification: KeySource;
  private published: readonly PublishedKey[] = [];
  private current: { kid: string; sign: (typ: string) => SigningKey } | null = null;
  private activation: readonly Sample<'algorithm'>[] = [];
  private loadedAtMs = -Infinity;
  private reloading: Promise<void> | null = null;
  private timer: NodeJS.Timeout | null = null;
  private readonly logger = new Logger(SigningKeys.name);

  constructor(
    private readonly repository: SigningKeysRepository,
    private readonly secretBox: SecretBox,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
    health: HealthRegistry,
  ) {
    // A replica that cannot open the active key, e.g. because it has another sealing key, fails this check.
    // It gets no traffic, and a roll-out stops there.
    health.addStartupCheck({
      name: 'signing-keys',
      check: async () => (this.current === null ? this.loadOrCreate() : undefined),
    });
    metrics.sampledGauge(
      'auth_signing_key_activated_timestamp_seconds',
      'When the asymmetric key that signs now became active, in seconds since 1970',
      ['algorithm'],
      () => this.activation,
    );
    this.verification = new ReloadingKeys({ ring: this.ring, reload: () => this.reload(), clock });
  }

  async onModuleInit(): Promise<void> {
    await this.loadOrCreate().catch((error: unknown) => {
      // The tables may not exist yet. Readiness reports that, and the next reload retries.
      this.logger.warn('signing keys could not be loaded', { err: error });
    });
    this.timer = setInterval(() => void this.reloadQuietly(), this.config.SIGNING_KEYS_RELOAD_MS).unref();
  }

  onApplicationShutdown(): void {
    if (this.timer !== null) clearInterval(this.timer);
  }

  /** Returns the active key. @throws {ProblemException} 503 while none is loaded */
  active(typ: string): SigningKey {
    if (this.current === null)
      throw problems.serviceUnavailable('Asymmetric signing is not available at the moment.');
    return this.current.sign(typ);
  }

  /**
   * Returns the public keys. Reloads them if they are older than 5 s, because a validator that has seen a
   * token with a new key may query any replica.
   */
  async publishedKeys(): Promise<readonly PublishedKey[]> {
    if (this.clock.monotonicMs() - this.loadedAtMs > PUBLISHED_MAX_AGE_MS) await this.reloadTogether();
    return this.published;
  }

  async reload(): Promise<void> {
    const startedAtMs = this.clock.monotonicMs();
    this.adopt(await this.repository.findUsable());
    this.loadedAtMs = startedAtMs;
  }

  /** Reloads once for all concurrent requests, because the route is anonymous. */
  private reloadTogether(): Promise<void> {
    this.reloading ??= this.reloadQuietly().finally(() => {
      this.reloading = null;
    });
    return this.reloading;
  }

  private async reloadQuietly(): Promise<void> {
    try {
      await this.loadOrCreate();
    } catch (error) {
      this.logger.warn('signing keys could not be reloaded; the known ones stay in use', { err: error });
    }
  }

  /**
   * Loads the keys. Generates an active key if the configured algorithm has none: at the first start, and
   * after the active key was retired without a successor.
   */
  private async loadOrCreate(): Promise<void> {
    await this.reload();
    if (this.current !== null) return;
    const key = generateSigningKey(this.config.ASYMMETRIC_SIGNING_ALGORITHM, this.secretBox);
    await this.repository.insert(key, 'active');
    await this.reload();
  }

  private adopt(keys: readonly UsableSigningKey[]): void {
    this.ring.replace(
      keys.map(({ kid, algorithm, publicJwk }) =>
        createVerificationKey({ kid, alg: algorithm, publicKey: publicJwk }),
      ),
    );
    this.published = keys.map(({ kid, algorithm, publicJwk }) => ({
      ...publicJwk,
      kid,
      alg: algorithm,
      use: 'sig',
    }));
    const active = keys.find(
      ({ state, algorithm }) => state === 'active' && algorithm === this.config.ASYMMETRIC_SIGNING_ALGORITHM,
    );
    this.activation = active === undefined ? [] : [activationOf(active)];
    if (active === undefined) this.current = null;
    else if (active.kid !== this.current?.kid)
      this.current = { kid: active.kid, sign: this.importPrivate(active) };
  }

  /** Decrypts and imports the private key once, so that signing does not repeat it. */
  private importPrivate({ kid, algorithm, sealedPrivateKey }: UsableSigningKey): (typ: string) => SigningKey {
    const pkcs8 = this.secretBox.open(signingKeyPurpose(kid), sealedPrivateKey);
    const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
    const byTyp = new Map<string, SigningKey>();
    return (typ) => {
      const known = byTyp.get(typ) ?? signingKey(algorithm, kid, key, typ);
      byTyp.set(typ, known);
      return known;
    };
  }
}

function activationOf({ algorithm, stateChangedAt }: UsableSigningKey): Sample<'algorithm'> {
  return { labels: { algorithm }, value: stateChangedAt.getTime() / SECOND_MS };
}

export interface ReloadingKeysOptions {
  ring: KeyRing;
  /** Loads the current keys into the ring. */
  reload: () => Promise<void>;
  clock: Clock;
}

/** Minimum time between two reloads, in ms, regardless of the key ids in tokens. */
const COOLDOWN_MS = 5_000;

/**
 * A key ring that reloads when a token names an unknown asymmetric key, because another replica may have
 * started to use a key that this replica has not loaded yet. At most one reload runs at a time, and at most
 * one starts per 5 s, so that made-up key ids cost next to nothing.
 */
export class ReloadingKeys implements KeySource {
  private reloadedAtMs = -Infinity;
  private reloading: Promise<void> | null = null;
  private failure: unknown = null;

  constructor(private readonly options: ReloadingKeysOptions) {}

  findKey(query: KeyQuery): VerificationKey | null | Promise<VerificationKey | null> {
    const key = this.options.ring.findKey(query);
    return key !== null || query.alg === 'HS256' || query.kid === undefined ? key : this.findNewer(query);
  }

  generation(): number {
    return this.options.ring.generation();
  }

  private async findNewer(query: KeyQuery): Promise<VerificationKey | null> {
    await this.reloadIfDue();
    const key = this.options.ring.findKey(query);
    // If the last reload failed, a missing key may exist nevertheless: it may be newer than the loaded keys.
    if (key === null && this.failure !== null)
      throw new TokenVerificationUnavailableError('keys', { cause: this.failure });
    return key;
  }

  /** Reloads the ring, or waits for the reload in progress. Does nothing within 5 s of the last reload. */
  private reloadIfDue(): Promise<void> {
    const { clock, reload } = this.options;
    if (this.reloading !== null) return this.reloading;
    if (clock.monotonicMs() - this.reloadedAtMs < COOLDOWN_MS) return Promise.resolve();
    this.reloadedAtMs = clock.monotonicMs();
    this.failure = null;
    this.reloading = reload()
      .catch((error: unknown) => {
        this.failure = error;
      })
      .finally(() => {
        this.reloading = null;
      });
    return this.reloading;
  }
}
