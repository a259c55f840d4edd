import { SECOND_MS } from '@platform/time';
import { epochSecond } from './token-claims';
import { TokenRejectionReason } from '../rejections/token-rejection';

/** How long a rotated refresh token may be presented again by a caller that did not get the response. */
export const REFRESH_GRACE_SECONDS = 30;

const HOUR_SECONDS = 60 * 60;

/**
 * A refresh token as its row, its family and the revocations tell it, at one instant of the database's clock.
 */
export interface RefreshState {
  now: Date;
  issuedAt: Date;
  authTime: Date;
  rotatedAt: Date | null;
  /**
   * From when on others could see the rotation; later than `rotatedAt` where its commit was late. Null: not
   * rotated, or nobody can tell yet.
   */
  rotationSeenAt: Date | null;
  successorRotatedAt: Date | null;
  familyRevokedAt: Date | null;
  /** The newest revocation of the person, user, subject or application behind the token. */
  userRevokedAt: Date | null;
  /** When the session has used its hourly number of refresh tokens: the instant of the oldest of them. Null:
   *  it may use more. */
  hourFullSince: Date | null;
}

/** Limits on refreshing, in seconds; null: no limit. */
export interface RefreshPolicy {
  maxAgeSeconds: number;
  idleSeconds: number | null;
}

/**
 * What to do with a genuine, unexpired refresh token. `reused` means: revoke the family, then reject as
 * revoked. `undecided`: nobody knows yet when the rotation became visible, so the client has to ask again.
 * `wait`: the session was refreshed too often in the last hour.
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

/** Decides a refresh. Revocations come first. For a token that was rotated before, the time since the
 *  rotation decides, and whether its successor has been used. Source: docs/spec-gaps.md. */
export function decideRefresh(state: RefreshState, policy: RefreshPolicy): RefreshDecision {
  if (state.familyRevokedAt !== null || isRevokedByUser(state.issuedAt, state.userRevokedAt))
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
    // No client got a response before the rotation was visible.
    if (state.rotationSeenAt === null) return { action: 'undecided' };
    if (isOver(state.rotationSeenAt)) return { action: 'reused' };
  }
  // Two holders inside the window look like one impatient caller until the successor is used as well.
  if (state.successorRotatedAt !== null)
    return { action: 'reject', reason: TokenRejectionReason.RefreshTokenIsNotValid };
  return { action: 'repeat-successor' };
}

/**
 * True when a revocation of the user covers a token issued at `issuedAt`: at or before the revocation's
 * second.
 */
export function isRevokedByUser(issuedAt: Date, userRevokedAt: Date | null): boolean {
  return userRevokedAt !== null && epochSecond(issuedAt) <= epochSecond(userRevokedAt);
}

function secondsBetween(earlier: Date, later: Date): number {
  return (later.getTime() - earlier.getTime()) / SECOND_MS;
}
