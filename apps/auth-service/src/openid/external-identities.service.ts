import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import type { Resolution } from '../identity/identity';
import { IdentityResolver } from '../identity/identity-resolver.service';
import { findExternalIdentity } from './find-external-identity.query';
import type { ExternalIdentity } from './identity-provider.client';

/** Who the identity provider's users are on this platform. */
@Injectable()
export class ExternalIdentities {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly identities: IdentityResolver,
  ) {}

  /** Only a mapping that somebody has made counts. An e-mail address or a name proves nothing: its owner may change. */
  async resolve({ issuer, subject }: ExternalIdentity): Promise<Resolution> {
    const query = await findExternalIdentity(this.dataSource, issuer, subject);
    return query === null ? { outcome: 'absent' } : this.identities.resolve(query);
  }
}
