import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { IDENTIFIER } from '../identity/identity-stores.entity';

/**
 * A refresh family is a session: its refresh tokens, issued by one sign-in and by bearer exchanges of its
 * tokens. The row is inserted with the first refresh token and deleted with the last. A session without
 * refresh tokens has no row.
 */
@Entity({ schema: 'auth', name: 'refresh_family' })
@Index('refresh_family_live_subject', ['subject', 'createdAt', 'sessionId'], {
  where: 'subject IS NOT NULL AND revoked_at IS NULL',
})
@Index('refresh_family_live_user', ['userId', 'createdAt', 'sessionId'], {
  where: 'user_id IS NOT NULL AND revoked_at IS NULL',
})
@Index('refresh_family_ended', ['subject', 'applicationKey', 'revokedAt'], {
  where: 'revoked_at IS NOT NULL',
})
export class RefreshFamily {
  /** Claim `sid`, column `family_id`. */
  @PrimaryColumn({ type: 'uuid', name: 'family_id' })
  sessionId!: string;

  @Column({ type: 'text' })
  subject!: string;

  @Column({ ...IDENTIFIER, name: 'person_id', nullable: true })
  personId!: number | null;

  @Column({ ...IDENTIFIER, name: 'user_id', nullable: true })
  userId!: number | null;

  @Column({ type: 'text', name: 'application_key', collation: 'C' })
  applicationKey!: string;

  /** The TokenFlow by which the user signed in. */
  @Column({ type: 'text' })
  flow!: string;

  /** Personas of the sign-in. No token of the family has more. */
  @Column({ type: 'integer', name: 'persona_limit' })
  personaLimit!: number;

  /** The time at which the user authenticated. */
  @Column({ type: 'timestamptz', name: 'auth_time' })
  authTime!: Date;

  @Column({ type: 'timestamptz', name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Column({ type: 'timestamptz', name: 'revoked_at', nullable: true })
  revokedAt!: Date | null;

  @Column({ type: 'text', name: 'revoked_because', nullable: true })
  revokedBecause!: string | null;

  /**
   * Issue date up to which used refresh tokens were pruned. A genuine token issued up to that date that has
   * no row was used. Null: none was pruned.
   */
  @Column({ type: 'timestamptz', name: 'pruned_until', nullable: true })
  prunedUntil!: Date | null;
}

/** A refresh token. It is used once and then replaced by its successor. */
@Entity({ schema: 'auth', name: 'refresh_token' })
@ForeignKey(() => RefreshFamily, ['sessionId'], ['sessionId'], {
  name: 'refresh_token_family_id_fkey',
  onDelete: 'CASCADE',
})
@Index('refresh_token_family_issued', ['sessionId', 'issuedAt'])
@Index('refresh_token_expires_at', ['expiresAt'])
export class RefreshToken {
  @PrimaryColumn({ type: 'uuid' })
  jti!: string;

  @Column({ type: 'uuid', name: 'family_id' })
  sessionId!: string;

  @Column({ type: 'timestamptz', name: 'issued_at' })
  issuedAt!: Date;

  @Column({ type: 'timestamptz', name: 'expires_at' })
  expiresAt!: Date;

  @Column({ type: 'timestamptz', name: 'rotated_at', nullable: true })
  rotatedAt!: Date | null;

  /**
   * Id of the transaction that rotated the token. `rotatedAt` is the start of that transaction, not its
   * commit.
   */
  @Column({ type: 'bigint', name: 'rotated_in', nullable: true })
  rotatedIn!: string | null;

  @Column({ type: 'uuid', name: 'successor_jti', nullable: true })
  successorJti!: string | null;
}
