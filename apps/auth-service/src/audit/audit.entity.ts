import { Check, Column, Entity, Index, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';

/** The columns that all audit trails share. */
abstract class AuditEntry {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', name: 'audit_id', generatedIdentity: 'ALWAYS' })
  auditId!: string;

  @Column({ type: 'timestamptz', name: 'occurred_at', default: () => 'now()' })
  occurredAt!: Date;
}

/** A token request and its outcome. The service's database role may only insert rows. */
@Entity({ schema: 'auth', name: 'token_audit' })
@Check('token_audit_check', '(status = 200) = (reason IS NOT NULL AND reason = 0)')
@Index('token_audit_occurred_at', ['occurredAt'], { type: 'brin' })
@Index('token_audit_access_token', ['accessTokenId'])
class TokenAudit extends AuditEntry {
  @Column({ type: 'text', name: 'trace_id', nullable: true })
  traceId!: string | null;

  @Column({ type: 'text' })
  flow!: string;

  @Column({ type: 'smallint' })
  status!: number;

  /** A TokenRejectionReason; null if the request was not decided, e.g. in an outage. */
  @Column({ type: 'smallint', nullable: true })
  reason!: number | null;

  /** The internal reason, which callers never see. */
  @Column({ type: 'text', nullable: true })
  detail!: string | null;

  /** The application key as sent. It is verified only if the request succeeded. */
  @Column({ type: 'text', name: 'application_key', nullable: true })
  applicationKey!: string | null;

  /** The subject of a verified token, or of the user that the stores resolved. */
  @Column({ type: 'text', nullable: true })
  subject!: string | null;

  @Column({ type: 'text', name: 'user_name', nullable: true })
  userName!: string | null;

  @Column({ type: 'inet', nullable: true })
  address!: string | null;

  /** The `jti` of the issued access token, by which it can be found and revoked. */
  @Column({ type: 'uuid', name: 'access_token_id', nullable: true })
  accessTokenId!: string | null;

  /**
   * Null for a row about one request. Otherwise the number of refused requests of one network in one minute
   * that the row represents; its other columns describe the last of them.
   */
  @Column({ type: 'integer', nullable: true })
  refusals!: number | null;
}

/**
 * The count of refused token requests of one network in one minute. It is deleted when its audit row is
 * written, after the minute is over.
 */
@Entity({ schema: 'auth', name: 'refusal_count' })
@Index('refusal_count_minute', ['minute'])
class RefusalCount {
  /** An IPv4 address, the /48 network of an IPv6 address, or `unknown`. */
  @PrimaryColumn({ type: 'text', collation: 'C' })
  network!: string;

  @PrimaryColumn({ type: 'timestamptz' })
  minute!: Date;

  @Column({ type: 'integer' })
  refusals!: number;

  /** The flow of the last refusal. The next three columns describe the last refusal too. */
  @Column({ type: 'text' })
  flow!: string;

  @Column({ type: 'smallint' })
  status!: number;

  @Column({ type: 'smallint', nullable: true })
  reason!: number | null;

  @Column({ type: 'inet', nullable: true })
  address!: string | null;
}

/** A revocation of a token, a user or a refresh family. The service's database role may only insert rows. */
@Entity({ schema: 'auth', name: 'revocation_audit' })
@Index('revocation_audit_occurred_at', ['occurredAt'], { type: 'brin' })
class RevocationAudit extends AuditEntry {
  @Column({ type: 'text', name: 'trace_id', nullable: true })
  traceId!: string | null;

  @Column({ type: 'text' })
  domain!: string;

  @Column({ type: 'text' })
  identifier!: string;

  /** `request`; `reuse`: a refresh token was reused; `displaced`: the user had too many sessions. */
  @Column({ type: 'text' })
  because!: string;

  @Column({ type: 'text', name: 'revoked_by_subject', nullable: true })
  revokedBySubject!: string | null;

  @Column({ type: 'text', name: 'revoked_by_client', nullable: true })
  revokedByClient!: string | null;

  @Column({ type: 'inet', nullable: true })
  address!: string | null;
}

/**
 * A change of an application, its secrets or a signing key. Triggers write the rows for every change,
 * whichever program or role makes it. The service's database role has no access.
 */
@Entity({ schema: 'auth', name: 'administration_audit' })
class AdministrationAudit extends AuditEntry {
  /** The table of the changed row. */
  @Column({ type: 'text' })
  object!: string;

  /** The application's key, or the signing key's `kid`. */
  @Column({ type: 'text' })
  name!: string;

  @Column({ type: 'text' })
  operation!: string;

  /** The new values of the changed columns, without secrets and keys. */
  @Column({ type: 'jsonb' })
  change!: object;

  @Column({ type: 'text', name: 'database_role', default: () => 'SESSION_USER' })
  databaseRole!: string;

  @Column({
    type: 'text',
    nullable: true,
    default: () => "current_setting('application_name', true)",
  })
  program!: string | null;

  @Column({ type: 'inet', nullable: true, default: () => 'inet_client_addr()' })
  address!: string | null;
}

export const AUDIT_ENTITIES = [TokenAudit, RefusalCount, RevocationAudit, AdministrationAudit] as const;
