import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { auditedUserName } from './token-attempt';

/** A token request in the audit trail. */
export interface AuditedAttempt {
  occurredAt: Date;
  flow: string;
  status: number;
  /** A TokenRejectionReason; null if the request was not decided, e.g. in an outage. */
  reason: number | null;
  /** The internal reason, which callers never see. */
  detail: string | null;
  applicationKey: string | null;
  userName: string | null;
  subject: string | null;
  address: string | null;
}

// Hand-written SQL. Rows are found by the index on `occurred_at`; there is no index by name.
const FIND = `
  SELECT occurred_at AS "occurredAt", flow, status, reason, detail, application_key AS "applicationKey",
    user_name AS "userName", subject, host(address) AS address
  FROM auth.token_audit
  WHERE occurred_at >= $1 AND (user_name = ANY ($2) OR subject = ANY ($3))
  ORDER BY occurred_at DESC, audit_id DESC LIMIT $4`;

/** Reads the audit trail of tokens for administrators. Only the role that owns the tables may read it. */
@Injectable()
export class AuditedAttemptsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /**
   * Finds the latest requests by user name or subject, newest first. It scans the whole trail since `since`.
   */
  find(
    who: { userNames: readonly string[]; subjects: readonly string[] },
    since: Date,
    limit: number,
  ): Promise<AuditedAttempt[]> {
    const names = who.userNames.map(auditedUserName);
    return this.dataSource.query(FIND, [since, names, who.subjects, limit]);
  }
}
