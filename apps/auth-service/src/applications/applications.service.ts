import { createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { batched } from '@platform/database';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { openSecret } from '../keys/secret-box';
import type { Application, ApplicationWithSecrets } from './application';
import { applicationSecretPurpose } from './application-secrets';
import { ApplicationsRepository } from './applications.repository';
import type { EnabledApplication } from './applications.repository';

/** Registered applications, as the token flows look them up. Concurrent calls share a statement. */
@Injectable()
export class ApplicationsService {
  private readonly findEnabled: (applicationKey: string) => Promise<EnabledApplication | null>;
  private readonly encryptionKey: KeyObject;

  constructor(repository: ApplicationsRepository, @Inject(AUTH_CONFIG) config: AuthConfig) {
    this.encryptionKey = createSecretKey(config.SECRET_ENCRYPTION_KEY);
    this.findEnabled = batched((keys) => repository.findEnabled(keys));
  }

  /** The enabled application with this key, or null. Its secrets stay sealed. */
  async find(applicationKey: string): Promise<Application | null> {
    const found = await this.findEnabled(applicationKey);
    if (found === null) return null;
    const { sealedSecrets: _sealed, ...application } = found;
    return application;
  }

  /** The same with its live secrets, decrypted: for a request that proves that it knows one. */
  async findWithSecrets(applicationKey: string): Promise<ApplicationWithSecrets | null> {
    const found = await this.findEnabled(applicationKey);
    if (found === null) return null;
    const { sealedSecrets, ...application } = found;
    const purpose = applicationSecretPurpose(applicationKey);
    const secrets = sealedSecrets.map((sealed) => openSecret(this.encryptionKey, purpose, sealed));
    return { ...application, secrets };
  }
}
