import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { RevocationDomain } from './revocation';

/**
 * One entry of the revocation registry. Partition `auth.revocation` holds the domains `jti`, `svc-personid`
 * and `internal-legacy`; `auth.session_revocation` holds `sid`, `sub` and `client_id`.
 */
@Entity({ schema: 'auth', name: 'revocations' })
@Index('revocations_date', ['revocationDate', 'domain', 'identifier'])
export class RevocationEntity {
  @PrimaryColumn({ type: 'text', collation: 'C' })
  domain!: RevocationDomain;

  @PrimaryColumn({ type: 'text', collation: 'C' })
  identifier!: string;

  /** In whole milliseconds, so that the date in a response is exactly the date by which the list filters. */
  @Column({ name: 'revocation_date', type: 'timestamptz', precision: 3 })
  revocationDate!: Date;

  @Column({ name: 'revoked_by_subject', type: 'text' })
  revokedBySubject!: string;

  @Column({ name: 'revoked_by_client', type: 'text', nullable: true })
  revokedByClient!: string | null;

  /**
   * The time after which every covered token has expired, if it is less than 366 days after `revocationDate`;
   * otherwise null.
   */
  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt!: Date | null;

  /**
   * True if the caller revoked its own token or session. Rows with false count against the quota of a caller
   * who is not an administrator.
   */
  @Column({ type: 'boolean', default: false })
  own!: boolean;

  /**
   * The last time at which the user, an administrator or an operator set the revocation, which interrupts
   * sign-ins in progress. Null if it interrupts none: revocations by other callers, revocations of an
   * application, and revocations of a service's tokens over HTTP.
   */
  @Column({ name: 'interrupts_at', type: 'timestamptz', precision: 3, nullable: true })
  interruptsAt!: Date | null;

  /**
   * The application whose quota this revocation counts against; empty: callers without an application; null:
   * no quota.
   */
  @Column({ name: 'counted_client', type: 'text', collation: 'C', nullable: true })
  countedClient!: string | null;

  /**
   * True once the row was seen committed while its date was recent enough for every validator to read it.
   * Release 1.0.0 writes true.
   */
  @Column({ type: 'boolean', default: true })
  confirmed!: boolean;
}

/**
 * The number of revocations that count against the quota of a caller, or of all callers of an application, in
 * the current minute. The table is UNLOGGED.
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
