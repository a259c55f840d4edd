import type { Session } from '#verification/traffic/journal.ts';
import { CheckBuilder, countBy, type Check } from './check.ts';

/** A refresh token as the auth service's database has it. */
export interface StoredToken {
  readonly jti: string;
  readonly familyId: string;
  readonly successorJti: string | null;
}

/** A family of refresh tokens; null when it was never revoked. */
export interface StoredFamily {
  readonly familyId: string;
  readonly revokedBecause: string | null;
}

/**
 * Compares sessions with their families: each token that somebody was given is there, each rotation went to
 * the successor that the caller was given, no family forked (every token follows one other, exactly one is
 * the youngest), and only families that their holders gave up are revoked.
 */
export function auditSessions(
  sessions: readonly Session[],
  tokens: readonly StoredToken[],
  families: readonly StoredFamily[],
): Check {
  const check = new CheckBuilder('refresh tokens: rotations kept, no family forked or ended wrongly');
  const stored = new Map(tokens.map((token) => [token.jti, token]));
  const revoked = new Map(families.map(({ familyId, revokedBecause }) => [familyId, revokedBecause]));
  let acknowledged = 0;
  for (const session of sessions) {
    acknowledged += 1 + session.rotations.length;
    const familyId = stored.get(session.firstJti)?.familyId;
    if (familyId === undefined) check.lost(`the first token ${session.firstJti}`);
    const because = familyId === undefined ? null : (revoked.get(familyId) ?? null);
    if (session.end === 'alive' && because !== null)
      check.wrong(`family ${String(familyId)} is revoked (${because}), and its holder did not do it`);
    for (const { presented, received } of session.rotations) {
      if (!stored.has(received)) check.lost(`token ${received}`);
      const successor = stored.get(presented)?.successorJti;
      if (successor !== received)
        check.wrong(`token ${presented} was not rotated to ${received} but ${String(successor)}`);
    }
  }
  check.noneTwice(findForks(tokens));
  return check.done(acknowledged, tokens.length);
}

/** Families that are not one chain. */
function findForks(tokens: readonly StoredToken[]): string[] {
  const successors = countBy(
    tokens.flatMap(({ successorJti }) => successorJti ?? []),
    (jti) => jti,
  );
  const findings = [...successors]
    .filter(([, count]) => count > 1)
    .map(([jti, count]) => `${jti} succeeds ${count} tokens`);
  for (const familyId of new Set(tokens.map((token) => token.familyId))) {
    const members = tokens.filter((token) => token.familyId === familyId);
    const heads = members.filter(({ jti }) => !successors.has(jti)).length;
    const tails = members.filter(({ successorJti }) => successorJti === null).length;
    if (heads !== 1 || tails !== 1)
      findings.push(`family ${familyId} has ${heads} first and ${tails} youngest tokens`);
  }
  return findings;
}

export function auditRevocations(acknowledged: readonly string[], stored: readonly string[]): Check {
  const check = new CheckBuilder('revocations: stored');
  check.eachOf(acknowledged, new Set(stored));
  return check.done(acknowledged.length, stored.length);
}
