import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isInFuture, queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../../purge-batch';

/** Consecutive wrong passwords that lock an account. */
const FAILURES_BEFORE_LOCKOUT = 5;
const FIRST_LOCKOUT_SECONDS = 60;
const LONGEST_LOCKOUT_SECONDS = 900;

const IS_LOCKED = `coalesce(${isInFuture('locked_until', LONGEST_LOCKOUT_SECONDS)}, false)`;
const WAS_LOCKED = `coalesce(${isInFuture('l.locked_until', LONGEST_LOCKOUT_SECONDS)}, false)`;

// Hand-written SQL: atomic across replicas, and hot. It does not change the row of a locked account, so that
// further guesses do not prolong the lock. An account is locked after $2 failures; each lock lasts twice as
// long as the previous one.
const RECORD_FAILURE: PreparedStatement = {
  name: 'record-password-failure',
  text: `
  INSERT INTO auth.password_lockout AS l (user_name_key, failures, lockouts, last_failure_at)
  VALUES ($1, 1, 0, now())
  ON CONFLICT (user_name_key) DO UPDATE SET
    failures = CASE WHEN l.failures + 1 >= $2 THEN 0 ELSE l.failures + 1 END,
    lockouts = CASE WHEN l.failures + 1 >= $2 THEN l.lockouts + 1 ELSE l.lockouts END,
    locked_until = CASE WHEN l.failures + 1 >= $2
      THEN now() + least($4, $3 * 2 ^ least(l.lockouts, 20)) * interval '1 second' END,
    last_failure_at = now()
  WHERE NOT ${WAS_LOCKED}
  RETURNING ${IS_LOCKED} AS locked`,
};

// Hand-written SQL: clears failures and checks the lock in one round trip, at every login.
const CLEAR_FAILURES: PreparedStatement = {
  name: 'clear-password-failures',
  text: `
  WITH cleared AS (
    DELETE FROM auth.password_lockout
    WHERE user_name_key = $1 AND NOT ${IS_LOCKED}
  )
  SELECT EXISTS (SELECT 1 FROM auth.password_lockout WHERE user_name_key = $1 AND ${IS_LOCKED}) AS locked`,
};

/**
 * Purges rows an hour after their last failure: anyone can create rows by inventing user names. Waiting for
 * the purge allows no more guesses than the locks do, 20 an hour in the long run.
 */
export const PURGE_PASSWORD_LOCKOUTS = purgeBatch(
  'password_lockout',
  `last_failure_at < now() - interval '1 hour' AND (locked_until IS NULL OR locked_until < now())`,
  'last_failure_at',
);

/** The failed logins under one user name, whether or not it exists. */
export interface FailedLogins {
  userNameKey: string;
  /** Failures since the last lock or success. */
  failures: number;
  /** Lockouts since the last success. */
  lockouts: number;
  /** Null if not locked now. */
  lockedUntil: Date | null;
  lastFailureAt: Date;
}

// Hand-written SQL: the database decides whether a lock is over, as it does at a login.
const FIND_FAILURES = `
  SELECT user_name_key AS "userNameKey", failures, lockouts, last_failure_at AS "lastFailureAt",
    CASE WHEN ${IS_LOCKED} THEN locked_until END AS "lockedUntil"
  FROM auth.password_lockout WHERE user_name_key = ANY ($1) ORDER BY user_name_key`;

/**
 * The outcome of a login attempt. `locked-now`: refused, and this failure locked the account.
 * `locked-before`: the account was already locked.
 */
export type PasswordAttemptOutcome = 'admitted' | 'refused' | 'locked-now' | 'locked-before';

/** Failed logins by user name, and the resulting lockouts. */
@Injectable()
export class PasswordLockoutsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Finds the failed logins of these user names that still count. */
  find(userNameKeys: readonly string[]): Promise<FailedLogins[]> {
    return this.dataSource.query(FIND_FAILURES, [userNameKeys]);
  }

  /**
   * Settles a login attempt after its password was verified. The database decides at this point, so that
   * parallel guesses on several replicas cannot overtake the lock: while it lasts, the right password is
   * refused too. Unknown user names are counted like existing ones, so that they cannot be told apart.
   */
  async settleAttempt(userNameKey: string, verified: boolean): Promise<PasswordAttemptOutcome> {
    if (verified) {
      const [row] = await queryPrepared<{ locked: boolean }>(this.dataSource, CLEAR_FAILURES, [userNameKey]);
      return row?.locked === false ? 'admitted' : 'locked-before';
    }
    const [recorded] = await queryPrepared<{ locked: boolean }>(this.dataSource, RECORD_FAILURE, [
      userNameKey,
      FAILURES_BEFORE_LOCKOUT,
      FIRST_LOCKOUT_SECONDS,
      LONGEST_LOCKOUT_SECONDS,
    ]);
    // The statement does not change the row of a locked account, so it returns none.
    if (recorded === undefined) return 'locked-before';
    return recorded.locked ? 'locked-now' : 'refused';
  }
}
