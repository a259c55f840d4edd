import { createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { batched } from '@platform/database';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { openSecret } from '../keys/secret-box';
import { applicationSecretPurpose, comparableSecrets } from './application';
import { ApplicationsRepository } from './applications.repository';
import type { EnabledApplication } from './applications.repository';

/** Registered applications. */
@Injectable()
export class ApplicationsService {
  /** The enabled application with this key, or null. Its secrets stay sealed. Concurrent calls share a statement. */
  readonly find: (applicationKey: string) => Promise<EnabledApplication | null>;
  private readonly encryptionKey: KeyObject;

  constructor(repository: ApplicationsRepository, @Inject(AUTH_CONFIG) config: AuthConfig) {
    this.encryptionKey = createSecretKey(config.SECRET_ENCRYPTION_KEY);
    this.find = batched((keys) => repository.findEnabled(keys));
  }

  /** The application's live secrets, decrypted, for a request that proves that it knows one; for an unknown application dummies of equal cost. */
  secretsToCompare(application: EnabledApplication | null): readonly Buffer[] {
    if (application === null) return comparableSecrets(null);
    const purpose = applicationSecretPurpose(application.applicationKey);
    return comparableSecrets(
      application.sealedSecrets.map((sealed) => openSecret(this.encryptionKey, purpose, sealed)),
    );
  }
}
