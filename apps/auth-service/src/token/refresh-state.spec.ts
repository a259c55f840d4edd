import { TokenRejectionReason } from '../rejections/token-rejection';
import type { RefreshState } from './refresh-state';
import { decideRefresh, isRevokedByUser } from './refresh-state';

const NOW = new Date('2026-06-01T12:00:00Z');
const POLICY = { maxAgeSeconds: 1_000, idleSeconds: null };

function secondsAgo(seconds: number): Date {
  return new Date(NOW.getTime() - seconds * 1_000);
}

/** Returns a state whose rotation, if any, was committed at once, unless `rotationSeenAt` is overridden. */
function state(overrides: Partial<RefreshState> = {}): RefreshState {
  return {
    rotationSeenAt: overrides.rotatedAt ?? null,
    now: NOW,
    issuedAt: secondsAgo(100),
    authTime: secondsAgo(500),
    rotatedAt: null,
    successorRotatedAt: null,
    sessionRevokedAt: null,
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

  it('repeats the successor inside the window, even while the commit of the rotation cannot be dated', () => {
    const unknown = state({ rotatedAt: secondsAgo(30), rotationSeenAt: null });
    expect(decideRefresh(unknown, POLICY)).toEqual({ action: 'repeat-successor' });
  });

  it('refuses a retry inside the window once the successor has been used', () => {
    const used = state({ rotatedAt: secondsAgo(20), successorRotatedAt: secondsAgo(10) });
    expect(decideRefresh(used, POLICY)).toEqual(rejected(TokenRejectionReason.RefreshTokenIsNotValid));
  });

  it.each([null, secondsAgo(5)])(
    'detects reuse after the window (successor used: %p)',
    (successorRotatedAt) => {
      expect(decideRefresh(state({ rotatedAt: secondsAgo(30.001), successorRotatedAt }), POLICY)).toEqual({
        action: 'reused',
      });
    },
  );

  describe('once the rotation is older than the window', () => {
    const rotatedAt = secondsAgo(90);

    it.each([0, 30])('repeats the successor if it became visible %i s ago', (age) => {
      const late = state({ rotatedAt, rotationSeenAt: secondsAgo(age) });
      expect(decideRefresh(late, POLICY)).toEqual({ action: 'repeat-successor' });
      expect(decideRefresh({ ...late, successorRotatedAt: NOW }, POLICY)).toEqual(
        rejected(TokenRejectionReason.RefreshTokenIsNotValid),
      );
    });

    it('detects reuse if it became visible more than 30 s ago', () => {
      const late = state({ rotatedAt, rotationSeenAt: secondsAgo(30.001) });
      expect(decideRefresh(late, POLICY)).toEqual({ action: 'reused' });
    });

    it('decides nothing while its commit cannot be dated', () => {
      const unknown = state({ rotatedAt, rotationSeenAt: null });
      expect(decideRefresh(unknown, POLICY)).toEqual({ action: 'undecided' });
    });
  });

  it('checks revocation before everything else', () => {
    const expected = rejected(TokenRejectionReason.TokenRevoked);
    expect(decideRefresh(state({ sessionRevokedAt: NOW, rotatedAt: secondsAgo(500) }), POLICY)).toEqual(
      expected,
    );
    expect(decideRefresh(state({ userRevokedAt: NOW, authTime: secondsAgo(5_000) }), POLICY)).toEqual(
      expected,
    );
  });

  it('refuses a sign-in older than the limit, but not one exactly at the limit', () => {
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
  ])('waits at the hourly limit; oldest counted token issued %d s ago: %d s', (age, seconds) => {
    const full = state({ hourFullSince: secondsAgo(age) });
    expect(decideRefresh(full, POLICY)).toEqual({ action: 'wait', seconds });
  });

  it('repeats the successor and detects reuse even at the hourly limit', () => {
    const full = { hourFullSince: secondsAgo(10) };
    expect(decideRefresh(state({ ...full, rotatedAt: secondsAgo(5) }), POLICY)).toEqual({
      action: 'repeat-successor',
    });
    expect(decideRefresh(state({ ...full, rotatedAt: secondsAgo(31) }), POLICY)).toEqual({
      action: 'reused',
    });
  });

  it('refuses a token that stayed unused longer than the idle limit', () => {
    const policy = { ...POLICY, idleSeconds: 99 };
    expect(decideRefresh(state(), policy)).toEqual(rejected(TokenRejectionReason.RefreshThresholdExceeded));
    expect(decideRefresh(state(), { ...policy, idleSeconds: 100 })).toEqual({ action: 'rotate' });
  });
});

describe('revocation of a user', () => {
  const revokedAt = new Date('2026-06-01T12:00:00.400Z');

  it('covers tokens issued before or in its second', () => {
    expect(isRevokedByUser(new Date('2026-06-01T12:00:00Z'), revokedAt)).toBe(true);
    expect(isRevokedByUser(new Date('2026-06-01T12:00:01Z'), revokedAt)).toBe(false);
    expect(isRevokedByUser(new Date('2026-06-01T12:00:00Z'), null)).toBe(false);
  });
});
