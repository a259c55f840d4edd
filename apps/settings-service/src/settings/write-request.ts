import { createHash } from 'node:crypto';
import type { Preconditions } from '@platform/service-defaults';
import { settingKeyText } from './setting-key';
import type { SettingKey } from './setting-key';
import type { JsonText } from './setting-value';

/**
 * The author of a write, as the token describes it. Source: settings spec, "using the caller's person
 * identifier, name and persona".
 */
export interface Author {
  /** The token's `sub`. Idempotency keys are scoped to it, so that no caller can read another's response. */
  readonly subject: string;
  readonly personId: number | null;
  readonly userId: number | null;
  readonly name: string | null;
  /** All persona bits of the token. */
  readonly personas: number;
}

/** What the history records about one write besides the setting itself. */
export interface AuditTrail {
  readonly author: Author;
  readonly requestId: string;
  /** The caller's Idempotency-Key; null when none was sent. */
  readonly idempotencyKey: string | null;
  /** Hash of the request's content. Absent without an idempotency key, and until `fingerprinted` adds it. */
  readonly fingerprint?: Buffer;
  /** Index of the write within a request for many, from 0. */
  readonly part?: number;
}

/** The parsed headers of a write. */
export interface WriteHeaders {
  readonly conditions: Preconditions;
  readonly idempotencyKey: string | null;
  readonly requestId: string;
}

/** The common part of every write of a setting: PUT, DELETE, restore. */
export interface WriteRequest {
  readonly key: SettingKey;
  readonly conditions: Preconditions;
  readonly trail: AuditTrail;
}

/** One write of a request for many, without its author. */
export interface BulkWrite {
  readonly key: SettingKey;
  /** Null deletes the setting. */
  readonly value: JsonText | null;
  readonly conditions: Preconditions;
}

/** The operations that accept an Idempotency-Key. */
export type Operation = 'put' | 'delete' | 'restore' | 'write-many';

/** One write as the request asks for it. For a restoration, `value` is the history identifier. */
type RequestedWrite = Omit<BulkWrite, 'value'> & { readonly value: string | null };

/** The history columns that an audit trail fills. */
export const AUDIT_COLUMNS =
  'person_id, user_id, person_name, persona, request_id, idempotency_digest, idempotency_fingerprint';

/** Returns the write request of a caller for `key`. */
export function writeRequest(key: SettingKey, headers: WriteHeaders, caller: Author): WriteRequest {
  return { key, conditions: headers.conditions, trail: auditTrail(headers, caller) };
}

/** Returns the audit trail of a caller's request. */
export function auditTrail(headers: Omit<WriteHeaders, 'conditions'>, caller: Author): AuditTrail {
  const { subject, personId, userId, name, personas } = caller;
  const { idempotencyKey, requestId } = headers;
  return { author: { subject, personId, userId, name, personas }, requestId, idempotencyKey };
}

/**
 * Returns the trail with the fingerprint of the request. A request that repeats an Idempotency-Key must have
 * the same fingerprint: the same operation, settings, values and conditions.
 */
export function fingerprinted(
  trail: AuditTrail,
  operation: Operation,
  requested: readonly RequestedWrite[],
): AuditTrail {
  if (trail.idempotencyKey === null) return trail;
  const writes = requested.map(({ key, conditions, value }) => [settingKeyText(key), conditions, value]);
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([operation, ...writes]))
    .digest();
  return { ...trail, fingerprint };
}

/**
 * Returns a fixed-size digest of the author, the idempotency key and the part of the request; null without a
 * key.
 */
export function idempotencyDigest(trail: AuditTrail): Buffer | null {
  const { author, idempotencyKey, part = 0 } = trail;
  if (idempotencyKey === null) return null;
  return createHash('sha256')
    .update(JSON.stringify([author.subject, idempotencyKey, ...(part === 0 ? [] : [part])]))
    .digest();
}

/** Returns the column values of a trail, in the order of `AUDIT_COLUMNS`. */
export function auditColumns(trail: AuditTrail): readonly unknown[] {
  const { personId, userId, name, personas } = trail.author;
  // PostgreSQL cannot store U+0000. Without the replacement, a name in a token could make every write fail.
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

/** Transposes rows into one array per column, as `unnest` takes them. */
export function columnsOf(rows: readonly (readonly unknown[])[]): unknown[][] {
  return (rows[0] ?? []).map((_value, column) => rows.map((row) => row[column]));
}
