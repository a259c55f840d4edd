import { Check, Column, Entity, Index, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';

/** What every audit trail has. */
abstract class AuditEntry {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', name: 'audit_id', generatedIdentity: 'ALWAYS' })
  auditId!: string;

  @Column({ type: 'timestamptz', name: 'occurred_at', default: () => 'now()' })
  occurredAt!: Date;
}

/** A token request and what came of it. The service may insert rows and do nothing else with them. */
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

  /** TokenRejectionReason; null when there was no verdict, e.g. in an outage. */
  @Column({ type: 'smallint', nullable: true })
  reason!: number | null;

  /** Why, for us alone. */
  @Column({ type: 'text', nullable: true })
  detail!: string | null;

  /** As the caller gave it: proven only if the request succeeded. */
  @Column({ type: 'text', name: 'application_key', nullable: true })
  applicationKey!: string | null;

  /** Whom a verified token names, or whom the stores resolved. */
  @Column({ type: 'text', nullable: true })
  subject!: string | null;

  @Column({ type: 'text', name: 'user_name', nullable: true })
  userName!: string | null;

  @Column({ type: 'inet', nullable: true })
  address!: string | null;

  /** The `jti` of the issued access token: by it the token can be found and revoked. */
  @Column({ type: 'uuid', name: 'access_token_id', nullable: true })
  accessTokenId!: string | null;

  /**
   * Null: the row is one request. A number: it stands for so many refused requests of the network in that
   * minute, and shows the last one.
   */
  @Column({ type: 'integer', nullable: true })
  refusals!: number | null;
}

/**
 * The refused token requests of one network in one minute, until the minute is over and its audit row is
 * written.
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

  /** Of the last refusal, as the three below. */
  @Column({ type: 'text' })
  flow!: string;

  @Column({ type: 'smallint' })
  status!: number;

  @Column({ type: 'smallint', nullable: true })
  reason!: number | null;

  @Column({ type: 'inet', nullable: true })
  address!: string | null;
}

/**
 * A revocation of a token, a user or a refresh family. The service may insert rows and do nothing else with
 * them.
 */
@Entity({ schema: 'auth', name: 'revocation_audit' })
@Index('revocation_audit_occurred_at', ['occurredAt'], { type: 'brin' })
class RevocationAudit extends AuditEntry {
  @Column({ type: 'text', name: 'trace_id', nullable: true })
  traceId!: string | null;

  @Column({ type: 'text' })
  domain!: string;

  @Column({ type: 'text' })
  identifier!: string;

  /** `request`, `reuse` of a refresh token, or `displaced`: the user has too many sessions. */
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
 * A change of an application, its secrets or a signing key. Triggers write it, whoever makes the change; the
 * service has no right to it.
 */
@Entity({ schema: 'auth', name: 'administration_audit' })
class AdministrationAudit extends AuditEntry {
  /** The table of the changed row. */
  @Column({ type: 'text' })
  object!: string;

  /** The application's key or the key's `kid`. */
  @Column({ type: 'text' })
  name!: string;

  @Column({ type: 'text' })
  operation!: string;

  /** The new values of what has changed, without secrets and keys. */
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
