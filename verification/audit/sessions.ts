import type { Session } from '#verification/traffic/journal.ts';
import { CheckBuilder, countBy, type Check } from './check.ts';

/** A refresh token in the auth service's database. */
export interface StoredToken {
  readonly jti: string;
  readonly sessionId: string;
  readonly successorJti: string | null;
}

/** A family of refresh tokens. */
export interface StoredFamily {
  readonly sessionId: string;
  /** Null: never revoked. */
  readonly revokedBecause: string | null;
}

/**
 * Compares sessions with their token families. Each issued token must be stored, each rotation must lead to
 * the successor that the caller received, each family must be one unforked chain with exactly one first and
 * one youngest token, and only families that their holders revoked may be revoked.
 */
export function auditSessions(
  sessions: readonly Session[],
  tokens: readonly StoredToken[],
  families: readonly StoredFamily[],
): Check {
  const check = new CheckBuilder('refresh tokens: rotations kept, no family forked or ended wrongly');
  const stored = new Map(tokens.map((token) => [token.jti, token]));
  const revoked = new Map(families.map(({ sessionId, revokedBecause }) => [sessionId, revokedBecause]));
  let acknowledged = 0;
  for (const session of sessions) {
    acknowledged += 1 + session.rotations.length;
    const sessionId = stored.get(session.firstJti)?.sessionId;
    if (sessionId === undefined) check.lost(`the first token ${session.firstJti}`);
    const because = sessionId === undefined ? null : (revoked.get(sessionId) ?? null);
    if (session.end === 'alive' && because !== null)
      check.wrong(`family ${String(sessionId)} is revoked (${because}), but not by its holder`);
    for (const { presented, received } of session.rotations) {
      if (!stored.has(received)) check.lost(`token ${received}`);
      const successor = stored.get(presented)?.successorJti;
      if (successor !== received)
        check.wrong(`token ${presented} was not rotated to ${received} but ${String(successor)}`);
    }
  }
  check.addDuplicates(findForks(tokens));
  return check.done(acknowledged, tokens.length);
}

/** Finds families that are not a single chain. */
function findForks(tokens: readonly StoredToken[]): string[] {
  const successors = countBy(
    tokens.flatMap(({ successorJti }) => successorJti ?? []),
    (jti) => jti,
  );
  const findings = [...successors]
    .filter(([, count]) => count > 1)
    .map(([jti, count]) => `${jti} succeeds ${count} tokens`);
  for (const sessionId of new Set(tokens.map((token) => token.sessionId))) {
    const members = tokens.filter((token) => token.sessionId === sessionId);
    const heads = members.filter(({ jti }) => !successors.has(jti)).length;
    const tails = members.filter(({ successorJti }) => successorJti === null).length;
    if (heads !== 1 || tails !== 1)
      findings.push(`family ${sessionId} has ${heads} first and ${tails} youngest tokens`);
  }
  return findings;
}

export function auditRevocations(acknowledged: readonly string[], stored: readonly string[]): Check {
  const check = new CheckBuilder('revocations: stored');
  check.expectEach(acknowledged, new Set(stored));
  return check.done(acknowledged.length, stored.length);
}
