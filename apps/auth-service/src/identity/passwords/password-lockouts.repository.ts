import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isStillToCome, queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../../purge-batch';

/** Wrong passwords in a row before an account is locked. */
const FAILURES_BEFORE_LOCKOUT = 5;
const FIRST_LOCKOUT_SECONDS = 60;
const LONGEST_LOCKOUT_SECONDS = 900;

const IS_LOCKED = `coalesce(${isStillToCome('locked_until', LONGEST_LOCKOUT_SECONDS)}, false)`;
const WAS_LOCKED = `coalesce(${isStillToCome('l.locked_until', LONGEST_LOCKOUT_SECONDS)}, false)`;

// Hand-written SQL: atomic for all replicas, and hot. A locked account's row is not changed: guessing on does
// not lengthen the lock of its owner. $2 failures lock; every lock is twice as long as the one before it.
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

// Hand-written SQL: clears and judges in one round trip, at every login.
const CLEAR_FAILURES: PreparedStatement = {
  name: 'clear-password-failures',
  text: `
  WITH cleared AS (
    DELETE FROM auth.password_lockout
    WHERE user_name_key = $1 AND NOT ${IS_LOCKED}
  )
  SELECT EXISTS (SELECT 1 FROM auth.password_lockout WHERE user_name_key = $1 AND ${IS_LOCKED}) AS locked`,
};

/** Failures that no longer count. Strangers make a row with each name that they invent, so rows are kept for
 *  an hour only. Waiting for that allows no more guesses than the locks do: 20 an hour in the long run. */
export const PURGE_PASSWORD_LOCKOUTS = purgeBatch(
  'password_lockout',
  `last_failure_at < now() - interval '1 hour' AND (locked_until IS NULL OR locked_until < now())`,
  'last_failure_at',
);

/** The failed logins under one user name, known or not. */
export interface FailedLogins {
  userNameKey: string;
  /** Since the last lock or success. */
  failures: number;
  /** Since the last success. */
  lockouts: number;
  /** Null: not locked now. */
  lockedUntil: Date | null;
  lastFailureAt: Date;
}

// By hand: the database judges whether a lock is over, as at a login.
const FIND_FAILURES = `
  SELECT user_name_key AS "userNameKey", failures, lockouts, last_failure_at AS "lastFailureAt",
    CASE WHEN ${IS_LOCKED} THEN locked_until END AS "lockedUntil"
  FROM auth.password_lockout WHERE user_name_key = ANY ($1) ORDER BY user_name_key`;

/**
 * What became of a login attempt: it may go on, it may not, it may not and has locked the account, or the
 * account was locked before.
 */
export type PasswordAttemptOutcome = 'admitted' | 'refused' | 'locked-now' | 'locked-before';

/** Wrong passwords by user name, and the lockouts that follow from them. */
@Injectable()
export class PasswordLockoutsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** The failed logins under user names that still count. */
  find(userNameKeys: readonly string[]): Promise<FailedLogins[]> {
    return this.dataSource.query(FIND_FAILURES, [userNameKeys]);
  }

  /**
   * Settles one login attempt after its password was verified. Judged afterwards, in the database, so that a
   * burst of parallel guesses on several replicas cannot slip in before the lock: a right password does not
   * help while locked. Unknown user names are counted like known ones, which keeps them alike.
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
    // A locked account's row is left alone.
    if (recorded === undefined) return 'locked-before';
    return recorded.locked ? 'locked-now' : 'refused';
  }
}
