import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, IsNull } from 'typeorm';
import { formatSubject } from '../identity/identity';
import { isRevocationIdentifier } from '../revocations/revocation';
import { newestRevocation } from '../revocations/revocations.repository';
import { RefreshFamily } from '../token/refresh-session.entity';

/** The owner of sessions: a subject, or an internal user regardless of the subject in the tokens. */
export type SessionOwner = { subject: string } | { userId: number };

/** All names of an owner, who has the sessions of any of the subjects and of the internal user. */
export interface SessionOwnerNames {
  subjects: readonly string[];
  userId: number | null;
}

/** The revocation domains that can name the owner of sessions. */
export const OWNER_DOMAINS = ['svc-personid', 'internal-legacy', 'sub'] as const;

/** Returns the owner that a domain and an identifier name; null if they are not valid. */
export function sessionOwner(name: string, identifier: string): SessionOwner | null {
  const domain = OWNER_DOMAINS.find((each) => each === name);
  if (domain === undefined || !isRevocationIdentifier(domain, identifier)) return null;
  if (domain === 'sub') return { subject: identifier };
  const id = Number(identifier);
  return domain === 'internal-legacy'
    ? { userId: id }
    : { subject: formatSubject({ kind: 'person', personId: id }) };
}

export interface SessionRow {
  /** The session id, named as in responses and in the output of `sessions list`. */
  sid: string;
  subject: string;
  flow: string;
  applicationKey: string;
  createdAt: Date;
  lastUsedAt: Date;
  expiresAt: Date;
  /** `createdAt` with microseconds, as text. */
  position: string;
}

/** The position after which the next page starts. */
export type SessionPosition = Pick<SessionRow, 'position' | 'sid'>;

/** One page of sessions, newest first. */
export interface SessionList {
  sessions: SessionRow[];
  /**
   * Where the scan stopped at its limit: more sessions may follow, even if `sessions` is empty. Null: no
   * more.
   */
  scanEnd: SessionPosition | null;
}

/** A row of LIST. If no session is listed, the result is one row with `sid` null. */
type ListedRow = (SessionRow | { sid: null }) & { lastPosition: string | null; lastSid: string | null };

/**
 * Maximum sessions scanned for one page, including those that can no longer be refreshed. It bounds the cost
 * of a page.
 */
const SCAN_LIMIT = 1_000;

/** SQL: the newest sessions of an owner that have not been ended. */
const sessionsOf = (owner: string): string => `
  SELECT f.* FROM auth.refresh_family f
  WHERE ${owner} AND f.revoked_at IS NULL AND (f.created_at, f.family_id) < ($3::timestamptz, $4::uuid)
  ORDER BY f.created_at DESC, f.family_id DESC LIMIT ${String(SCAN_LIMIT)}`;

// Hand-written SQL: whether a session can be refreshed depends on its tokens and the revocations, which are
// looked up per session. Only the newest unused token matters: it expires last, and a revocation of the user
// that covers it covers all older ones.
const LIST = `
  WITH scanned AS MATERIALIZED (
    SELECT * FROM (
      SELECT named.* FROM unnest($1::text[]) AS asked (subject) CROSS JOIN LATERAL (${sessionsOf('f.subject = asked.subject')}) AS named
      UNION SELECT numbered.* FROM (${sessionsOf('f.user_id = $6::bigint')}) AS numbered
    ) AS session
    ORDER BY created_at DESC, family_id DESC LIMIT ${String(SCAN_LIMIT)}
  ), listed AS MATERIALIZED (
    SELECT f.family_id AS sid, f.subject, f.flow, f.application_key AS "applicationKey", f.created_at AS "createdAt",
      unused.issued_at AS "lastUsedAt", least(unused.expires_at, ends_at) AS "expiresAt", f.created_at::text AS position
    FROM (SELECT * FROM scanned ORDER BY created_at DESC, family_id DESC) AS f
    CROSS JOIN LATERAL (SELECT f.auth_time + $2 * interval '1 second' AS ends_at) AS age
    CROSS JOIN LATERAL (${newestRevocation('f.person_id::text', 'f.user_id::text', 'f.subject', 'f.application_key')}) AS revoked
    CROSS JOIN LATERAL (
      SELECT issued_at, expires_at FROM auth.refresh_token t
      WHERE t.family_id = f.family_id AND rotated_at IS NULL ORDER BY issued_at DESC LIMIT 1
    ) AS unused
    WHERE unused.expires_at > now() AND ends_at > now()
      AND (revoked.at IS NULL OR date_trunc('second', unused.issued_at) > date_trunc('second', revoked.at))
    ORDER BY f.created_at DESC, f.family_id DESC LIMIT $5
  ), last AS (
    SELECT created_at::text AS "lastPosition", family_id AS "lastSid" FROM scanned
    ORDER BY created_at DESC, family_id DESC OFFSET ${String(SCAN_LIMIT - 1)} LIMIT 1
  )
  SELECT * FROM (SELECT 1) AS always LEFT JOIN last ON true LEFT JOIN listed ON true
  ORDER BY "createdAt" DESC, sid DESC`;

const IS_KNOWN = `
  SELECT EXISTS (SELECT 1 FROM auth.refresh_family WHERE family_id = $1::uuid)
    OR EXISTS (SELECT 1 FROM auth.revocations WHERE domain = 'sid' AND identifier = $1::text) AS "isKnown"`;

function namesOf(owner: SessionOwner | SessionOwnerNames): SessionOwnerNames {
  if ('subjects' in owner) return owner;
  return 'subject' in owner
    ? { subjects: [owner.subject], userId: null }
    : { subjects: [], userId: owner.userId };
}

/** The position before the newest session. */
const LIST_START: SessionPosition = { position: 'infinity', sid: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };

/**
 * Lists sessions that have refresh tokens. `RefreshSessionsRepository` has the statements of token requests.
 */
@Injectable()
export class SessionsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /**
   * Returns a page of the sessions that can still be refreshed, newest first.
   * @param maxAgeSeconds maximum time from a sign-in to the end of its session
   */
  async page(
    owner: SessionOwner | SessionOwnerNames,
    maxAgeSeconds: number,
    limit: number,
    { position, sid }: SessionPosition = LIST_START,
  ): Promise<SessionList> {
    const { subjects, userId } = namesOf(owner);
    const rows = await this.dataSource.query<ListedRow[]>(LIST, [
      subjects,
      maxAgeSeconds,
      position,
      sid,
      limit,
      userId,
    ]);
    const { lastPosition, lastSid } = rows[0]!;
    return {
      sessions: rows.flatMap(({ lastPosition: _, lastSid: __, ...row }) => (row.sid === null ? [] : [row])),
      scanEnd: lastPosition === null || lastSid === null ? null : { position: lastPosition, sid: lastSid },
    };
  }

  /**
   * Returns up to `limit` of the newest sessions that can still be refreshed. Reads as many pages as needed.
   */
  async list(owner: SessionOwner, maxAgeSeconds: number, limit: number): Promise<SessionRow[]> {
    const found: SessionRow[] = [];
    let from: SessionPosition | null = LIST_START;
    while (from !== null && found.length < limit) {
      const { sessions, scanEnd } = await this.page(owner, maxAgeSeconds, limit - found.length, from);
      found.push(...sessions);
      from = scanEnd;
    }
    return found;
  }

  /** Returns true if the session has a row or a stored revocation. */
  async isKnown(sessionId: string): Promise<boolean> {
    const [row] = await this.dataSource.query<{ isKnown: boolean }[]>(IS_KNOWN, [sessionId]);
    return row!.isKnown;
  }

  /** Returns true if the owner has a session that has not been ended. */
  hasLive(owner: SessionOwner): Promise<boolean> {
    return this.dataSource.getRepository(RefreshFamily).existsBy({ ...owner, revokedAt: IsNull() });
  }
}
