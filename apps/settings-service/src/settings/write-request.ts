import { createHash } from 'node:crypto';
import type { Preconditions } from '@platform/service-defaults';
import { settingKeyText } from './setting-key';
import type { SettingKey } from './setting-key';
import type { JsonText } from './setting-value';

/**
 * Who wrote, as far as the token says. Source: settings spec, "using the caller's person identifier, name and
 * persona".
 */
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
  /** Of what the request asks for; absent without a key, and while the request is not yet taken up. */
  readonly fingerprint?: Buffer;
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

/** The operations that take an Idempotency-Key. */
export type Operation = 'put' | 'delete' | 'restore' | 'write-many';

/** What a request asks for about one setting; `value` of a restoration is the entry. */
type AskedWrite = Omit<BulkWrite, 'value'> & { readonly value: string | null };

/** The columns of the history that a trail fills. */
export const AUDIT_COLUMNS =
  'person_id, user_id, person_name, persona, request_id, idempotency_digest, idempotency_fingerprint';

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

/**
 * The trail of a request with the fingerprint of what it asks for. A request that repeats an Idempotency-Key
 * must have the same fingerprint: same operation, settings, values and conditions.
 */
export function fingerprinted(
  trail: AuditTrail,
  operation: Operation,
  asked: readonly AskedWrite[],
): AuditTrail {
  if (trail.idempotencyKey === null) return trail;
  const writes = asked.map(({ key, conditions, value }) => [settingKeyText(key), conditions, value]);
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([operation, ...writes]))
    .digest();
  return { ...trail, fingerprint };
}

/** One fixed-size digest for an author's idempotency key and the part of the request; null without a key. */
export function idempotencyDigest(trail: AuditTrail): Buffer | null {
  const { author, idempotencyKey, part = 0 } = trail;
  if (idempotencyKey === null) return null;
  return createHash('sha256')
    .update(JSON.stringify([author.subject, idempotencyKey, ...(part === 0 ? [] : [part])]))
    .digest();
}

/** The columns of a trail, in the order of `AUDIT_COLUMNS`. */
export function auditColumns(trail: AuditTrail): readonly unknown[] {
  const { personId, userId, name, personas } = trail.author;
  // PostgreSQL stores no U+0000; a token's name must not be able to fail a write.
  const storableName = name?.replaceAll('\u0000', '\ufffd') ?? null;
  return [
    personId,
    userId,
    storableName,
    personas,
    trail.requestId,
    idempotencyDigest(trail),
    trail.fingerprint ?? null,
  ];
}

/** A list for each column of rows, as `unnest` takes them. */
export function columnsOf(rows: readonly (readonly unknown[])[]): unknown[][] {
  return (rows[0] ?? []).map((_value, column) => rows.map((row) => row[column]));
}
