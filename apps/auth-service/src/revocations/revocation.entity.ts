import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { RevocationDomain } from './revocation';

/** One entry of the revocation registry. */
@Entity({ schema: 'auth', name: 'revocation' })
@Check(
  'revocation_domain_check',
  "domain IN ('svc-personid', 'internal-legacy', 'jti', 'sid', 'sub', 'client_id')",
)
@Index('revocation_date', ['revocationDate', 'domain', 'identifier'])
@Index('revocation_of_tokens', ['revocationDate'], { where: "domain = 'jti'" })
@Index('revocation_of_sessions', ['revocationDate'], { where: "domain = 'sid'" })
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
