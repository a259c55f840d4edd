import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { KeyRing, createVerificationKey } from '@platform/access-tokens';
import { problems } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { DataSource } from 'typeorm';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import type { SigningKey } from '../token/compact-jws';
import { signingKey } from '../token/compact-jws';
import type { StoredSigningKey } from './find-signing-keys.query';
import { findSigningKeys } from './find-signing-keys.query';
import { insertFirstSigningKey } from './insert-signing-key.query';
import { openSecret, sealSecret } from './secret-box';

/** A rotation reaches every replica within a minute; keys are published as `next` at least that long before they sign. */
const RELOAD_INTERVAL_MS = 30 * SECOND_MS;

/** A public key as GET /auth/.well-known/jwks.json lists it. */
export type PublishedKey = JsonWebKey & { kid: string; alg: string; use: 'sig' };

/** The asymmetric keys, kept in the database and reloaded while running. */
@Injectable()
export class SigningKeys implements OnModuleInit, OnApplicationShutdown {
  /** Every key that verifies: next, active and retired. */
  readonly verification = new KeyRing();
  published: readonly PublishedKey[] = [];
  private current: { kid: string; sign: (typ: string) => SigningKey } | null = null;
  private timer: NodeJS.Timeout | null = null;
  private readonly logger = new Logger(SigningKeys.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.loadOrCreate().catch((error: unknown) => {
      // Tables may not exist yet: readiness says so, and the next reload makes up for it.
      this.logger.warn('signing keys could not be loaded', { err: error });
    });
    this.timer = setInterval(() => void this.reloadQuietly(), RELOAD_INTERVAL_MS).unref();
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

  /** Replaces what is known by what the database says. */
  async reload(): Promise<void> {
    this.adopt(await findSigningKeys(this.dataSource));
  }

  private async reloadQuietly(): Promise<void> {
    try {
      await this.loadOrCreate();
    } catch (error) {
      this.logger.warn('signing keys could not be reloaded; the known ones stay in use', { err: error });
    }
  }

  private async loadOrCreate(): Promise<void> {
    await this.reload();
    if (this.current !== null) return;
    await this.createFirst();
    await this.reload();
  }

  private async createFirst(): Promise<void> {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const kid = `es256-${randomBytes(9).toString('base64url')}`;
    const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
    const sealedPrivateKey = sealSecret(this.config.SECRET_ENCRYPTION_KEY, signingKeyPurpose(kid), pkcs8);
    const publicJwk = publicKey.export({ format: 'jwk' });
    await insertFirstSigningKey(this.dataSource, { kid, algorithm: 'ES256', publicJwk, sealedPrivateKey });
  }

  private adopt(keys: readonly StoredSigningKey[]): void {
    this.verification.replace(
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
    const active = keys.find((key) => key.state === 'active');
    if (active === undefined) this.current = null;
    else if (active.kid !== this.current?.kid)
      this.current = { kid: active.kid, sign: this.importPrivate(active) };
  }

  /** Decrypts and imports the private key once; signing later costs neither. */
  private importPrivate({ kid, algorithm, sealedPrivateKey }: StoredSigningKey): (typ: string) => SigningKey {
    const pkcs8 = openSecret(this.config.SECRET_ENCRYPTION_KEY, signingKeyPurpose(kid), sealedPrivateKey);
    const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
    const byTyp = new Map<string, SigningKey>();
    return (typ) => {
      const known = byTyp.get(typ) ?? signingKey(algorithm, kid, key, typ);
      byTyp.set(typ, known);
      return known;
    };
  }
}

/** What a sealed private key is bound to. */
export function signingKeyPurpose(kid: string): string {
  return `signing-key:${kid}`;
}
