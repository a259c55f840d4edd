import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The failed logins of one user name, whether or not it exists. */
@Entity({ schema: 'auth', name: 'password_lockout' })
@Index('password_lockout_last_failure_at', ['lastFailureAt'])
export class PasswordLockout {
  @PrimaryColumn({ type: 'text', name: 'user_name_key', collation: 'C' })
  userNameKey!: string;

  /** Failures since the last lockout or success. */
  @Column({ type: 'integer' })
  failures!: number;

  /** Lockouts since the last success. Each lasts twice as long as the previous one. */
  @Column({ type: 'integer' })
  lockouts!: number;

  @Column({ type: 'timestamptz', name: 'locked_until', nullable: true })
  lockedUntil!: Date | null;

  @Column({ type: 'timestamptz', name: 'last_failure_at' })
  lastFailureAt!: Date;
}
