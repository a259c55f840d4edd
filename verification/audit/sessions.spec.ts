import type { Session } from '#verification/traffic/journal.ts';
import { auditRevocations, auditSessions, type StoredToken } from './sessions.ts';

const session = (end: Session['end'] = 'alive'): Session => ({
  firstJti: 'a',
  rotations: [{ presented: 'a', received: 'b' }],
  end,
});
const token = (jti: string, successorJti: string | null): StoredToken => ({
  jti,
  sessionId: 'f',
  successorJti,
});
const family = (revokedBecause: string | null = null) => [{ sessionId: 'f', revokedBecause }];

describe('auditSessions', () => {
  it('accepts a single chain with the successors that the caller received', () => {
    const check = auditSessions([session()], [token('a', 'b'), token('b', null)], family());
    expect(check).toMatchObject({ acknowledged: 2, audited: 2, lost: 0, duplicated: 0, findings: [] });
  });

  it('accepts a rotation whose response never reached the caller', () => {
    const tokens = [token('a', 'b'), token('b', 'c'), token('c', null)];
    expect(auditSessions([session()], tokens, family()).findings).toEqual([]);
  });

  it('finds a token of the caller that is not stored', () => {
    expect(auditSessions([session()], [token('a', null)], family())).toMatchObject({ lost: 1 });
    expect(auditSessions([session()], [], []).lost).toBe(2);
  });

  it('finds a family that forked', () => {
    const forked = [token('a', 'b'), token('b', null), token('c', null)];
    expect(auditSessions([session()], forked, family()).duplicated).toBe(1);
  });

  it('finds a token that succeeds two others', () => {
    const merged = [token('a', 'b'), token('c', 'b'), token('b', null)];
    expect(auditSessions([session()], merged, family()).duplicated).toBeGreaterThan(0);
  });

  it('finds a family that was revoked, but not by its holder', () => {
    const tokens = [token('a', 'b'), token('b', null)];
    expect(auditSessions([session()], tokens, family('reuse')).findings).toHaveLength(1);
    expect(auditSessions([session('revoked')], tokens, family('revoked')).findings).toEqual([]);
  });
});

describe('auditRevocations', () => {
  it('finds an acknowledged revocation that is not stored', () => {
    expect(auditRevocations(['a', 'b'], ['b', 'c'])).toMatchObject({ lost: 1, acknowledged: 2, audited: 2 });
  });
});
