import { createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { together } from '@platform/database';
import type { DataSource } from 'typeorm';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { openSecret } from '../keys/secret-box';
import type { Application, ApplicationWithSecrets } from './application';
import { applicationSecretPurpose } from './application-secret';
import type { ApplicationRow } from './find-application.query';
import { findApplications } from './find-application.query';

/** Registered applications. */
@Injectable()
export class ApplicationsService {
  private readonly findRow: (applicationKey: string) => Promise<ApplicationRow | null>;
  private readonly encryptionKey: KeyObject;

  constructor(@InjectDataSource() dataSource: DataSource, @Inject(AUTH_CONFIG) config: AuthConfig) {
    this.encryptionKey = createSecretKey(config.SECRET_ENCRYPTION_KEY);
    this.findRow = together((keys) => findApplications(dataSource, keys));
  }

  /** The enabled application with this key, or null. Its secrets stay sealed. */
  async find(applicationKey: string): Promise<Application | null> {
    const row = await this.findRow(applicationKey);
    if (row === null) return null;
    const { sealedSecrets: _sealed, ...application } = row;
    return application;
  }

  /** The same with its live secrets, decrypted: for a request that proves that it knows one. */
  async findWithSecrets(applicationKey: string): Promise<ApplicationWithSecrets | null> {
    const row = await this.findRow(applicationKey);
    if (row === null) return null;
    const { sealedSecrets, ...application } = row;
    const purpose = applicationSecretPurpose(applicationKey);
    const secrets = sealedSecrets.map((sealed) => openSecret(this.encryptionKey, purpose, sealed));
    return { ...application, secrets };
  }
}
