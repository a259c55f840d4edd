import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { RevocationDomain } from './revocation';

/** One entry of the revocation registry. Partition `auth.revocation` holds the domains `jti`, `svc-personid`
 *  and `internal-legacy`, `auth.session_revocation` holds `sid`, `sub` and `client_id`. */
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

  /**
   * From when on no token that it covers is valid any more, if that is sooner than 366 days after its date;
   * else null.
   */
  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt!: Date | null;

  /** True when the caller revoked its own token or session. Rows with false count when a caller who is no
   *  administrator is checked. */
  @Column({ type: 'boolean', default: false })
  own!: boolean;

  /** When the user, an administrator or an operator last set it; that ends sign-ins under way. A revocation
   *  of an application, or by HTTP of a service, does not set it. */
  @Column({ name: 'interrupts_at', type: 'timestamptz', precision: 3, nullable: true })
  interruptsAt!: Date | null;

  /** The application whose quota it counts against, empty for none; null: it counts against none. */
  @Column({ name: 'counted_client', type: 'text', collation: 'C', nullable: true })
  countedClient!: string | null;

  /**
   * Seen committed while its date was young enough for every validator to read it. Release 1.0.0 leaves it
   * true.
   */
  @Column({ type: 'boolean', default: true })
  confirmed!: boolean;
}

/**
 * How many revocations of others a caller, or all callers of an application, have set in the present minute.
 * The table is UNLOGGED.
 */
@Entity({ schema: 'auth', name: 'revocation_quota' })
@Index('revocation_quota_window_ends_at', ['windowEndsAt'])
export class RevocationQuota {
  /** `caller:…` or `application:…`. */
  @PrimaryColumn({ type: 'text', collation: 'C' })
  subject!: string;

  @Column({ name: 'window_ends_at', type: 'timestamptz' })
  windowEndsAt!: Date;

  @Column({ type: 'integer' })
  used!: number;
}
