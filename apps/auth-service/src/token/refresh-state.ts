import { SECOND_MS } from '@platform/time';
import { epochSecond } from './token-claims';
import { TokenRejectionReason } from '../rejections/token-rejection';

/**
 * Grace window in which a client that got no response may present a rotated refresh token again, in seconds.
 */
export const REFRESH_GRACE_SECONDS = 30;

const HOUR_SECONDS = 60 * 60;

/**
 * The state of a refresh token, from its row, its family and the revocations, at one instant of the database.
 */
export interface RefreshState {
  now: Date;
  issuedAt: Date;
  authTime: Date;
  rotatedAt: Date | null;
  /**
   * The instant from which other transactions could see the rotation; later than `rotatedAt` if the commit
   * was late. Null: not rotated, or not known yet.
   */
  rotationSeenAt: Date | null;
  successorRotatedAt: Date | null;
  sessionRevokedAt: Date | null;
  /** The newest revocation of the person, user, subject or application behind the token. */
  userRevokedAt: Date | null;
  /**
   * Issue date of the oldest refresh token that counts against the hourly limit, if the session has reached
   * that limit; null if it has not.
   */
  hourFullSince: Date | null;
}

/** Limits on refreshing, in seconds; null: no limit. */
export interface RefreshPolicy {
  maxAgeSeconds: number;
  idleSeconds: number | null;
}

/**
 * The decision on a genuine, unexpired refresh token. `repeat-successor`: return the successor again.
 * `reused`: revoke the family, then reject as revoked. `undecided`: the commit of the rotation cannot be
 * dated yet, so the client must retry. `wait`: the session has reached its hourly limit of refreshes.
 */
export type RefreshDecision =
  | { action: 'rotate' }
  | { action: 'repeat-successor' }
  | { action: 'reused' }
  | { action: 'undecided' }
  | { action: 'wait'; seconds: number }
  | {
      action: 'reject';
      reason:
        | TokenRejectionReason.TokenRevoked
        | TokenRejectionReason.RefreshTokenIsNotValid
        | TokenRejectionReason.RefreshThresholdExceeded;
    };

/**
 * Decides a refresh. Revocations take precedence. A token that was rotated before is judged by the time since
 * its rotation and by whether its successor has been used. Source: docs/spec-gaps.md.
 */
export function decideRefresh(state: RefreshState, policy: RefreshPolicy): RefreshDecision {
  if (state.sessionRevokedAt !== null || isRevokedByUser(state.issuedAt, state.userRevokedAt))
    return { action: 'reject', reason: TokenRejectionReason.TokenRevoked };
  if (state.rotatedAt !== null) return decideRepeat(state, state.rotatedAt);
  const tooOld = secondsBetween(state.authTime, state.now) > policy.maxAgeSeconds;
  const idle = policy.idleSeconds !== null && secondsBetween(state.issuedAt, state.now) > policy.idleSeconds;
  if (tooOld || idle) return { action: 'reject', reason: TokenRejectionReason.RefreshThresholdExceeded };
  if (state.hourFullSince === null) return { action: 'rotate' };
  const waitSeconds = Math.ceil(HOUR_SECONDS - secondsBetween(state.hourFullSince, state.now));
  return { action: 'wait', seconds: Math.min(Math.max(waitSeconds, 1), HOUR_SECONDS) };
}

function decideRepeat(state: RefreshState, rotatedAt: Date): RefreshDecision {
  const isOver = (since: Date): boolean => secondsBetween(since, state.now) > REFRESH_GRACE_SECONDS;
  if (isOver(rotatedAt)) {
    // The grace window starts when the rotation became visible, because no client can have received the
    // response earlier.
    if (state.rotationSeenAt === null) return { action: 'undecided' };
    if (isOver(state.rotationSeenAt)) return { action: 'reused' };
  }
  // Inside the window a second request may be the same client's retry, unless the successor has been used
  // too.
  if (state.successorRotatedAt !== null)
    return { action: 'reject', reason: TokenRejectionReason.RefreshTokenIsNotValid };
  return { action: 'repeat-successor' };
}

/** Returns true if the token was issued in or before the second of the user's revocation. */
export function isRevokedByUser(issuedAt: Date, userRevokedAt: Date | null): boolean {
  return userRevokedAt !== null && epochSecond(issuedAt) <= epochSecond(userRevokedAt);
}

function secondsBetween(earlier: Date, later: Date): number {
  return (later.getTime() - earlier.getTime()) / SECOND_MS;
}
