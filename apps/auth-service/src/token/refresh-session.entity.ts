import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { IDENTIFIER } from '../identity/identity-stores.entity';

/** A family: a session that has refresh tokens, those of one sign-in and of the bearer exchanges that descend
 *  from it. The row is made together with the first refresh token and removed with the last. A session
 *  without refresh tokens has no row. */
@Entity({ schema: 'auth', name: 'refresh_family' })
@Index('refresh_family_live_subject', ['subject', 'createdAt', 'familyId'], {
  where: 'subject IS NOT NULL AND revoked_at IS NULL',
})
@Index('refresh_family_live_user', ['userId', 'createdAt', 'familyId'], {
  where: 'user_id IS NOT NULL AND revoked_at IS NULL',
})
@Index('refresh_family_ended', ['subject', 'applicationKey', 'revokedAt'], {
  where: 'revoked_at IS NOT NULL',
})
export class RefreshFamily {
  /** The session: claim `sid`. */
  @PrimaryColumn({ type: 'uuid', name: 'family_id' })
  familyId!: string;

  @Column({ type: 'text' })
  subject!: string;

  @Column({ ...IDENTIFIER, name: 'person_id', nullable: true })
  personId!: number | null;

  @Column({ ...IDENTIFIER, name: 'user_id', nullable: true })
  userId!: number | null;

  @Column({ type: 'text', name: 'application_key', collation: 'C' })
  applicationKey!: string;

  /** How the user signed in: a TokenFlow. */
  @Column({ type: 'text' })
  flow!: string;

  /** Personas of the sign-in; no token of the family grants more. */
  @Column({ type: 'integer', name: 'persona_limit' })
  personaLimit!: number;

  /** When the user proved who they are. */
  @Column({ type: 'timestamptz', name: 'auth_time' })
  authTime!: Date;

  @Column({ type: 'timestamptz', name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Column({ type: 'timestamptz', name: 'revoked_at', nullable: true })
  revokedAt!: Date | null;

  @Column({ type: 'text', name: 'revoked_because', nullable: true })
  revokedBecause!: string | null;

  /**
   * Used refresh tokens issued up to then were pruned: one that has no row any more was used. Null: none was
   * pruned.
   */
  @Column({ type: 'timestamptz', name: 'pruned_until', nullable: true })
  prunedUntil!: Date | null;
}

/** One refresh token. It is used once: then its successor takes its place. */
@Entity({ schema: 'auth', name: 'refresh_token' })
@ForeignKey(() => RefreshFamily, ['familyId'], ['familyId'], {
  name: 'refresh_token_family_id_fkey',
  onDelete: 'CASCADE',
})
@Index('refresh_token_family_issued', ['familyId', 'issuedAt'])
@Index('refresh_token_expires_at', ['expiresAt'])
export class RefreshToken {
  @PrimaryColumn({ type: 'uuid' })
  jti!: string;

  @Column({ type: 'uuid', name: 'family_id' })
  familyId!: string;

  @Column({ type: 'timestamptz', name: 'issued_at' })
  issuedAt!: Date;

  @Column({ type: 'timestamptz', name: 'expires_at' })
  expiresAt!: Date;

  @Column({ type: 'timestamptz', name: 'rotated_at', nullable: true })
  rotatedAt!: Date | null;

  /** The transaction that rotated it: `rotatedAt` is when it began, not when it was committed. */
  @Column({ type: 'bigint', name: 'rotated_in', nullable: true })
  rotatedIn!: string | null;

  @Column({ type: 'uuid', name: 'successor_jti', nullable: true })
  successorJti!: string | null;
}
