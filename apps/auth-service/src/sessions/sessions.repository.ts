import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, In, IsNull } from 'typeorm';
import { formatSubject } from '../identity/identity';
import { isRevocationIdentifier } from '../revocations/revocation';
import { newestRevocation } from '../revocations/revocations.repository';
import { RefreshFamily } from '../token/refresh-session.entity';

/** Whose sessions: a subject's, or an internal user's, whatever subject their tokens name. */
export type SessionOwner = { subject: string } | { userId: number };

/** Whose sessions, by all names: those of any of these subjects, and those of an internal user. */
export interface SessionOwnerNames {
  subjects: readonly string[];
  userId: number | null;
}

/** The domains of revocations by whose owner sessions can be listed. */
export const OWNER_DOMAINS = ['svc-personid', 'internal-legacy', 'sub'] as const;

/** Whose sessions a domain and an identifier name; null when they name nobody properly. */
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
  sid: string;
  subject: string;
  flow: string;
  applicationKey: string;
  createdAt: Date;
  lastUsedAt: Date;
  expiresAt: Date;
  /** `createdAt` to the microsecond. */
  position: string;
}

/** Where a page of the list ended. */
export type SessionPosition = Pick<SessionRow, 'position' | 'sid'>;

/** Sessions, newest first. There may be more behind `lookedUntil`, also when there are none here; null: there
 *  are not. */
export interface SessionList {
  sessions: SessionRow[];
  lookedUntil: SessionPosition | null;
}

/** A row of LIST. Without sessions there is one row all the same. */
type ListedRow = (SessionRow | { sid: null }) & { lastPosition: string | null; lastSid: string | null };

/** Sessions that are looked at for one page, live or not: a page costs no more, however many of them can be
 *  refreshed no more. */
const LOOKED_AT = 1_000;

/** SQL: sessions that have not been ended. The index stops at the limit. */
const sessionsOf = (owner: string): string => `
  SELECT f.* FROM auth.refresh_family f
  WHERE ${owner} AND f.revoked_at IS NULL AND (f.created_at, f.family_id) < ($3::timestamptz, $4::uuid)
  ORDER BY f.created_at DESC, f.family_id DESC LIMIT ${String(LOOKED_AT)}`;

// Hand-written SQL: what a session can still do is in its tokens and the revocations, looked up session by
// session. It lives while one unused token of it does. The newest of them expires last, and a revocation of
// the user that covers it covers all of them. The index has it at the end of its session, behind the used
// ones.
const LIST = `
  WITH looked_at AS MATERIALIZED (
    SELECT * FROM (
      SELECT named.* FROM unnest($1::text[]) AS asked (subject) CROSS JOIN LATERAL (${sessionsOf('f.subject = asked.subject')}) AS named
      UNION SELECT numbered.* FROM (${sessionsOf('f.user_id = $6::bigint')}) AS numbered
    ) AS session
    ORDER BY created_at DESC, family_id DESC LIMIT ${String(LOOKED_AT)}
  ), listed AS MATERIALIZED (
    SELECT f.family_id AS sid, f.subject, f.flow, f.application_key AS "applicationKey", f.created_at AS "createdAt",
      unused.issued_at AS "lastUsedAt", least(unused.expires_at, ends_at) AS "expiresAt", f.created_at::text AS position
    FROM (SELECT * FROM looked_at ORDER BY created_at DESC, family_id DESC) AS f
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
    SELECT created_at::text AS "lastPosition", family_id AS "lastSid" FROM looked_at
    ORDER BY created_at DESC, family_id DESC OFFSET ${String(LOOKED_AT - 1)} LIMIT 1
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

const BEFORE_ALL: SessionPosition = { position: 'infinity', sid: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };

/**
 * The sessions that have refresh tokens, for those who look at them; the hot statements are in
 * `RefreshSessionsRepository`.
 */
@Injectable()
export class SessionsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** A page of the sessions that can still be refreshed, newest first.
   *  @param maxAgeSeconds from a sign-in to the end of its session at the latest */
  async page(
    owner: SessionOwner | SessionOwnerNames,
    maxAgeSeconds: number,
    limit: number,
    { position, sid }: SessionPosition = BEFORE_ALL,
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
      lookedUntil:
        lastPosition === null || lastSid === null ? null : { position: lastPosition, sid: lastSid },
    };
  }

  /** The newest sessions that can still be refreshed, from as many pages as it takes. */
  async list(owner: SessionOwner, maxAgeSeconds: number, limit: number): Promise<SessionRow[]> {
    const found: SessionRow[] = [];
    let from: SessionPosition | null = BEFORE_ALL;
    while (from !== null && found.length < limit) {
      const { sessions, lookedUntil } = await this.page(owner, maxAgeSeconds, limit - found.length, from);
      found.push(...sessions);
      from = lookedUntil;
    }
    return found;
  }

  /** True for a session that has, or had until lately, refresh tokens, and for one that was ended lately. */
  async isKnown(sid: string): Promise<boolean> {
    const [row] = await this.dataSource.query<{ isKnown: boolean }[]>(IS_KNOWN, [sid]);
    return row!.isKnown;
  }

  /** True when somebody has a session that has not been ended. */
  hasLive(owner: SessionOwner): Promise<boolean> {
    return this.dataSource.getRepository(RefreshFamily).existsBy({ ...owner, revokedAt: IsNull() });
  }

  /** True for a session of one of these subjects, also one that has ended. */
  isOf(sid: string, subjects: readonly string[]): Promise<boolean> {
    return this.dataSource.getRepository(RefreshFamily).existsBy({ familyId: sid, subject: In(subjects) });
  }
}
