import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** Wrong passwords of one user name, known or not. */
@Entity({ schema: 'auth', name: 'password_lockout' })
@Index('password_lockout_last_failure_at', ['lastFailureAt'])
export class PasswordLockout {
  @PrimaryColumn({ type: 'text', name: 'user_name_key', collation: 'C' })
  userNameKey!: string;

  /** Since the last lockout or success. */
  @Column({ type: 'integer' })
  failures!: number;

  /** Since the last success; each lasts twice as long as the one before it. */
  @Column({ type: 'integer' })
  lockouts!: number;

  @Column({ type: 'timestamptz', name: 'locked_until', nullable: true })
  lockedUntil!: Date | null;

  @Column({ type: 'timestamptz', name: 'last_failure_at' })
  lastFailureAt!: Date;
}
