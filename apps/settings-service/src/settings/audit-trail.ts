import { createHash } from 'node:crypto';

/** Who wrote, as far as the token says. Source: settings spec, "using the caller's person identifier, name and persona". */
export interface Author {
  /** The token's `sub`: scopes idempotency keys, so that no caller can read another's answer. */
  readonly subject: string;
  readonly personId: number | null;
  readonly userId: number | null;
  readonly name: string | null;
  /** All persona bits of the token. */
  readonly personas: number;
}

/** What the history keeps of one write besides the setting itself. */
export interface AuditTrail {
  readonly author: Author;
  readonly requestId: string;
  /** The caller's Idempotency-Key; null when none was sent. */
  readonly idempotencyKey: string | null;
}

/** One fixed-size digest for an author's idempotency key; null without one. */
export function idempotencyDigest(trail: AuditTrail): Buffer | null {
  if (trail.idempotencyKey === null) return null;
  return createHash('sha256')
    .update(JSON.stringify([trail.author.subject, trail.idempotencyKey]))
    .digest();
}

/** The columns person_id, user_id, person_name, persona, request_id and idempotency_digest, in this order. */
export function auditColumns(trail: AuditTrail): readonly unknown[] {
  const { personId, userId, name, personas } = trail.author;
  // PostgreSQL stores no U+0000; a token's name must not be able to fail a write.
  const storableName = name?.replaceAll('\u0000', '\ufffd') ?? null;
  return [personId, userId, storableName, personas, trail.requestId, idempotencyDigest(trail)];
}
