import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { RevocationDomain } from './revocation';

/** One entry of the revocation registry. What version 0.2 knows is the partition `auth.revocation`, the rest `auth.session_revocation`. */
@Entity({ schema: 'auth', name: 'revocations' })
@Index('revocations_date', ['revocationDate', 'domain', 'identifier'])
export class RevocationEntity {
  @PrimaryColumn({ type: 'text', collation: 'C' })
  domain!: RevocationDomain;

  @PrimaryColumn({ type: 'text', collation: 'C' })
  identifier!: string;

  /** Whole milliseconds, so that the date a caller sees is exactly the date the list filters by. */
  @Column({ name: 'revocation_date', type: 'timestamptz', precision: 3 })
  revocationDate!: Date;

  @Column({ name: 'revoked_by_subject', type: 'text' })
  revokedBySubject!: string;

  @Column({ name: 'revoked_by_client', type: 'text', nullable: true })
  revokedByClient!: string | null;
}
