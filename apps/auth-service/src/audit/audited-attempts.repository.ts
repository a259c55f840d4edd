import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { auditedUserName } from './token-attempt';

/** A token request as the audit trail has it. */
export interface AuditedAttempt {
  occurredAt: Date;
  flow: string;
  status: number;
  /** TokenRejectionReason; null when there was no verdict, e.g. in an outage. */
  reason: number | null;
  /** The true reason, which callers do not learn. */
  detail: string | null;
  applicationKey: string | null;
  userName: string | null;
  subject: string | null;
  address: string | null;
}

// By hand: the index on the time bounds what is read; there is none by name.
const FIND = `
  SELECT occurred_at AS "occurredAt", flow, status, reason, detail, application_key AS "applicationKey",
    user_name AS "userName", subject, host(address) AS address
  FROM auth.token_audit
  WHERE occurred_at >= $1 AND (user_name = ANY ($2) OR subject = ANY ($3))
  ORDER BY occurred_at DESC, audit_id DESC LIMIT $4`;

/** The audit trail of tokens for administrators: only the role that owns the tables may read it. */
@Injectable()
export class AuditedAttemptsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** The latest requests under any of these names or subjects, newest first. It reads all of the trail
   *  since then. */
  find(
    who: { userNames: readonly string[]; subjects: readonly string[] },
    since: Date,
    limit: number,
  ): Promise<AuditedAttempt[]> {
    const names = who.userNames.map(auditedUserName);
    return this.dataSource.query(FIND, [since, names, who.subjects, limit]);
  }
}
