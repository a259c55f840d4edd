import { Check, Column, Entity, PrimaryColumn } from 'typeorm';
import { IDENTIFIER } from './identity-stores.entity';

/**
 * Maps a subject of the identity provider to a person or an internal user. Issuers and subjects are compared
 * byte by byte, because OpenID Connect defines them as case-sensitive.
 */
@Entity({ schema: 'auth', name: 'external_identity' })
@Check('external_identity_check', 'num_nonnulls(person_id, user_id) = 1')
@Check('external_identity_person_id_check', 'person_id > 0')
@Check('external_identity_user_id_check', 'user_id > 0')
export class ExternalIdentity {
  @PrimaryColumn({ type: 'text', collation: 'C' })
  issuer!: string;

  @PrimaryColumn({ type: 'text', collation: 'C' })
  subject!: string;

  @Column({ ...IDENTIFIER, name: 'person_id', nullable: true })
  personId!: number | null;

  @Column({ ...IDENTIFIER, name: 'user_id', nullable: true })
  userId!: number | null;

  @Column({ type: 'timestamptz', name: 'created_at', default: () => 'now()' })
  createdAt!: Date;
}
