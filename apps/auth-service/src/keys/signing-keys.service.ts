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

/** How old the list may be when it is published. */
const PUBLISHED_MAX_AGE_MS = 5_000;

/** A public key as GET /auth/.well-known/jwks.json lists it. */
export type PublishedKey = JsonWebKey & { kid: string; alg: string; use: 'sig' };

/** The asymmetric keys, kept in the database and reloaded while running. */
@Injectable()
export class SigningKeys implements OnModuleInit, OnApplicationShutdown {
  private readonly ring = new KeyRing();
  /**
   * Every key that verifies: next, active and retired. One that another replica has only just begun to use is
   * looked up.
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
    // With another key than its secrets were sealed with, a replica is to take no traffic: a roll-out stops
    // at it.
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
      // Tables may not exist yet: readiness says so, and the next reload makes up for it.
      this.logger.warn('signing keys could not be loaded', { err: error });
    });
    this.timer = setInterval(() => void this.reloadQuietly(), this.config.SIGNING_KEYS_RELOAD_MS).unref();
  }

  onApplicationShutdown(): void {
    if (this.timer !== null) clearInterval(this.timer);
  }

  /** The key that signs now. @throws {ProblemException} 503 while none is loaded */
  active(typ: string): SigningKey {
    if (this.current === null)
      throw problems.serviceUnavailable('Asymmetric signing is not available at the moment.');
    return this.current.sign(typ);
  }

  /**
   * What validators may rely on. Read anew when it is some seconds old: a validator that met an unknown key
   * may ask any replica.
   */
  async publishedKeys(): Promise<readonly PublishedKey[]> {
    if (this.clock.monotonicMs() - this.loadedAtMs > PUBLISHED_MAX_AGE_MS) await this.reloadTogether();
    return this.published;
  }

  async reload(): Promise<void> {
    const askedAtMs = this.clock.monotonicMs();
    this.adopt(await this.repository.findUsable());
    this.loadedAtMs = askedAtMs;
  }

  /** One reload for all who ask at the same time: anybody may ask for the keys. */
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
   * A service whose algorithm has no active key makes one: at its first start, and after its key was
   * withdrawn.
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

  /** Decrypts and imports the private key once; signing later costs neither. */
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
  /** Brings the ring up to date. */
  reload: () => Promise<void>;
  clock: Clock;
}

/** Shortest time between two reloads, whatever key ids tokens name. */
const COOLDOWN_MS = 5_000;

/**
 * The ring, looked up again when a token names an asymmetric key that it does not hold: another replica may
 * have begun to use one that this replica has not read yet. One reload at a time and few of them, so that
 * made-up key ids cost next to nothing.
 */
export class ReloadingKeys implements KeySource {
  private askedAtMs = -Infinity;
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
    await this.lookAgain();
    const key = this.options.ring.findKey(query);
    // "No such key" is an answer only when the keys could be read: it may be the newest one.
    if (key === null && this.failure !== null)
      throw new TokenVerificationUnavailableError('keys', { cause: this.failure });
    return key;
  }

  private lookAgain(): Promise<void> {
    const { clock, reload } = this.options;
    if (this.reloading !== null) return this.reloading;
    if (clock.monotonicMs() - this.askedAtMs < COOLDOWN_MS) return Promise.resolve();
    this.askedAtMs = clock.monotonicMs();
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
