import { TokenRejectionReason } from '../rejections/token-rejection';
import type { RefreshState } from './refresh-state';
import { decideRefresh, isRevokedByUser } from './refresh-state';

const NOW = new Date('2026-06-01T12:00:00Z');
const POLICY = { maxAgeSeconds: 1_000, idleSeconds: null };

function secondsAgo(seconds: number): Date {
  return new Date(NOW.getTime() - seconds * 1_000);
}

/** A rotation whose commit was in time, unless `rotationSeenAt` says otherwise. */
function state(overrides: Partial<RefreshState> = {}): RefreshState {
  return {
    rotationSeenAt: overrides.rotatedAt ?? null,
    now: NOW,
    issuedAt: secondsAgo(100),
    authTime: secondsAgo(500),
    rotatedAt: null,
    successorRotatedAt: null,
    familyRevokedAt: null,
    userRevokedAt: null,
    hourFullSince: null,
    ...overrides,
  };
}

const rejected = (reason: TokenRejectionReason): object => ({ action: 'reject', reason });

describe('decideRefresh', () => {
  it('rotates an unused token', () => {
    expect(decideRefresh(state(), POLICY)).toEqual({ action: 'rotate' });
  });

  it.each([0, 15, 30])('repeats the successor %i s after the rotation', (age) => {
    expect(decideRefresh(state({ rotatedAt: secondsAgo(age) }), POLICY)).toEqual({
      action: 'repeat-successor',
    });
  });

  it('repeats the successor inside the window, also while nobody can tell when others could see the rotation', () => {
    const unknown = state({ rotatedAt: secondsAgo(30), rotationSeenAt: null });
    expect(decideRefresh(unknown, POLICY)).toEqual({ action: 'repeat-successor' });
  });

  it('refuses a retry inside the window once the successor was used', () => {
    const used = state({ rotatedAt: secondsAgo(20), successorRotatedAt: secondsAgo(10) });
    expect(decideRefresh(used, POLICY)).toEqual(rejected(TokenRejectionReason.RefreshTokenIsNotValid));
  });

  it.each([null, secondsAgo(5)])('sees reuse after the window (successor used: %p)', (successorRotatedAt) => {
    expect(decideRefresh(state({ rotatedAt: secondsAgo(30.001), successorRotatedAt }), POLICY)).toEqual({
      action: 'reused',
    });
  });

  describe('once the rotation is older than the window', () => {
    const rotatedAt = secondsAgo(90);

    it.each([0, 30])('repeats the successor when others could see it %i s ago', (age) => {
      const late = state({ rotatedAt, rotationSeenAt: secondsAgo(age) });
      expect(decideRefresh(late, POLICY)).toEqual({ action: 'repeat-successor' });
      expect(decideRefresh({ ...late, successorRotatedAt: NOW }, POLICY)).toEqual(
        rejected(TokenRejectionReason.RefreshTokenIsNotValid),
      );
    });

    it('sees reuse when others could see it longer ago than that', () => {
      const late = state({ rotatedAt, rotationSeenAt: secondsAgo(30.001) });
      expect(decideRefresh(late, POLICY)).toEqual({ action: 'reused' });
    });

    it('decides nothing while nobody can tell', () => {
      const unknown = state({ rotatedAt, rotationSeenAt: null });
      expect(decideRefresh(unknown, POLICY)).toEqual({ action: 'undecided' });
    });
  });

  it('puts revocation before everything else', () => {
    const expected = rejected(TokenRejectionReason.TokenRevoked);
    expect(decideRefresh(state({ familyRevokedAt: NOW, rotatedAt: secondsAgo(500) }), POLICY)).toEqual(
      expected,
    );
    expect(decideRefresh(state({ userRevokedAt: NOW, authTime: secondsAgo(5_000) }), POLICY)).toEqual(
      expected,
    );
  });

  it('refuses a sign-in older than the limit, and not one exactly as old', () => {
    expect(decideRefresh(state({ authTime: secondsAgo(1_000) }), POLICY)).toEqual({ action: 'rotate' });
    expect(decideRefresh(state({ authTime: secondsAgo(1_000.001) }), POLICY)).toEqual(
      rejected(TokenRejectionReason.RefreshThresholdExceeded),
    );
  });

  it.each([
    [3_599.5, 1],
    [600, 3_000],
    [0, 3_600],
    [-5, 3_600],
  ])('waits while the hour is full (for %d s): %d s', (age, seconds) => {
    const full = state({ hourFullSince: secondsAgo(age) });
    expect(decideRefresh(full, POLICY)).toEqual({ action: 'wait', seconds });
  });

  it('repeats the successor and sees reuse even while the hour is full', () => {
    const full = { hourFullSince: secondsAgo(10) };
    expect(decideRefresh(state({ ...full, rotatedAt: secondsAgo(5) }), POLICY)).toEqual({
      action: 'repeat-successor',
    });
    expect(decideRefresh(state({ ...full, rotatedAt: secondsAgo(31) }), POLICY)).toEqual({
      action: 'reused',
    });
  });

  it('refuses a token that lay unused too long, when that is limited', () => {
    const policy = { ...POLICY, idleSeconds: 99 };
    expect(decideRefresh(state(), policy)).toEqual(rejected(TokenRejectionReason.RefreshThresholdExceeded));
    expect(decideRefresh(state(), { ...policy, idleSeconds: 100 })).toEqual({ action: 'rotate' });
  });
});

describe('revocation of a user', () => {
  const revokedAt = new Date('2026-06-01T12:00:00.400Z');

  it('covers tokens up to and in its second', () => {
    expect(isRevokedByUser(new Date('2026-06-01T12:00:00Z'), revokedAt)).toBe(true);
    expect(isRevokedByUser(new Date('2026-06-01T12:00:01Z'), revokedAt)).toBe(false);
    expect(isRevokedByUser(new Date('2026-06-01T12:00:00Z'), null)).toBe(false);
  });
});
