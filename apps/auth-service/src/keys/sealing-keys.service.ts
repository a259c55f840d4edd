import { Inject, Injectable } from '@nestjs/common';
import { HealthRegistry } from '@platform/service-defaults';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { SealedSecretsRepository } from './sealed-secrets.repository';
import { sealingKeys } from './sealing-keys';

const MAX_NAMED = 5;

/**
 * Fails the startup check of a replica whose configuration lacks a sealing key that is still needed. A
 * roll-out that removes a key too early stops at its first replica.
 */
@Injectable()
export class SealingKeysCheck {
  constructor(
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    private readonly repository: SealedSecretsRepository,
    health: HealthRegistry,
  ) {
    health.addStartupCheck({ name: 'sealing-keys', check: () => this.assertComplete() });
  }

  /** @throws {Error} naming the missing keys and the secrets that they sealed */
  private async assertComplete(): Promise<void> {
    const keyIds = sealingKeys(this.config).map(({ kid }) => kid);
    const sealed = await this.repository.findSealedWithOthers(keyIds);
    if (sealed.length === 0) return;
    const missing = [...new Set(sealed.map(({ keyId }) => keyId))].join(', ');
    const names = sealed.slice(0, MAX_NAMED).map(({ label }) => label);
    const more = sealed.length > MAX_NAMED ? ' and more' : '';
    throw new Error(
      `SECRET_ENCRYPTION_KEYS lacks the key ${missing}, which is still needed for ${names.join(', ')}${more}: ` +
        'configure it and run secrets re-encrypt before it is removed, or discard the secrets that it sealed (applications discard-secret)',
    );
  }
}
