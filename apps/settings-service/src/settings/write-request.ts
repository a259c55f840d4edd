import { createHash } from 'node:crypto';
import type { Preconditions } from '@platform/service-defaults';
import type { SettingKey } from './setting-key';
import type { JsonText } from './setting-value';

/** Who wrote, as far as the token says. Source: settings spec, "using the caller's person identifier, name and persona". */
export interface Author {
  /** The token's `sub`: scopes idempotency keys, so that no caller can read another's response. */
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
  /** Which of the writes of a request for many this is, from 0. */
  readonly part?: number;
}

/** What the headers of a write say. */
export interface WriteHeaders {
  readonly conditions: Preconditions;
  readonly idempotencyKey: string | null;
  readonly requestId: string;
}

/** What every write of a setting carries: PUT, DELETE, restore. */
export interface WriteRequest {
  readonly key: SettingKey;
  readonly conditions: Preconditions;
  readonly trail: AuditTrail;
}

/** One of the writes of a request, without who asked for it. */
export interface BulkWrite {
  readonly key: SettingKey;
  /** Null: delete. */
  readonly value: JsonText | null;
  readonly conditions: Preconditions;
}

/** A write of `key` as its caller asked for it. */
export function writeRequest(key: SettingKey, headers: WriteHeaders, caller: Author): WriteRequest {
  return { key, conditions: headers.conditions, trail: auditTrail(headers, caller) };
}

/** What the history keeps of a request of `caller`. */
export function auditTrail(headers: Omit<WriteHeaders, 'conditions'>, caller: Author): AuditTrail {
  const { subject, personId, userId, name, personas } = caller;
  const { idempotencyKey, requestId } = headers;
  return { author: { subject, personId, userId, name, personas }, requestId, idempotencyKey };
}

/** One fixed-size digest for an author's idempotency key and the part of the request; null without a key. */
export function idempotencyDigest(trail: AuditTrail): Buffer | null {
  const { author, idempotencyKey, part = 0 } = trail;
  if (idempotencyKey === null) return null;
  return createHash('sha256')
    .update(JSON.stringify([author.subject, idempotencyKey, ...(part === 0 ? [] : [part])]))
    .digest();
}

/** The columns person_id, user_id, person_name, persona, request_id and idempotency_digest, in this order. */
export function auditColumns(trail: AuditTrail): readonly unknown[] {
  const { personId, userId, name, personas } = trail.author;
  // PostgreSQL stores no U+0000; a token's name must not be able to fail a write.
  const storableName = name?.replaceAll('\u0000', '\ufffd') ?? null;
  return [personId, userId, storableName, personas, trail.requestId, idempotencyDigest(trail)];
}

/** A list for each column of rows, as `unnest` takes them. */
export function columnsOf(rows: readonly (readonly unknown[])[]): unknown[][] {
  return (rows[0] ?? []).map((_value, column) => rows.map((row) => row[column]));
}
