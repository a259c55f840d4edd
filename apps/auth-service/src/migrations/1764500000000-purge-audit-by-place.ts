import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A purge of the audit trail reads the rows it may remove and no others, whatever the statistics say. */
export class PurgeAuditByPlace1764500000000 implements MigrationInterface {
  readonly name = 'PurgeAuditByPlace1764500000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(purgeAudit(byPlace));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(purgeAudit(byIdentifier));
  }
}

const FIRST_BY_IDENTIFIER = 'ORDER BY audit_id LIMIT 10000';

/** By `ctid` the rows found are gone to one by one. */
const byPlace = (table: string): string => `
  DELETE FROM auth.${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM (SELECT ctid, occurred_at FROM auth.${table} ${FIRST_BY_IDENTIFIER}) AS first
    WHERE occurred_at < oldest))`;

/** As it was: PostgreSQL may join, and then reads the index of the whole table. */
const byIdentifier = (table: string): string => `
  DELETE FROM auth.${table} WHERE audit_id IN (SELECT audit_id FROM auth.${table} ${FIRST_BY_IDENTIFIER})
    AND occurred_at < oldest`;

const purgeAudit = (remove: (table: string) => string): string => `
  CREATE OR REPLACE FUNCTION auth.purge_audit(retention_days integer) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DECLARE
    removed_tokens bigint;
    removed_revocations bigint;
    oldest timestamptz := now() - greatest(retention_days, 30) * interval '1 day';
  BEGIN
    IF retention_days IS NULL THEN RAISE EXCEPTION 'a retention is required'; END IF;
    ${remove('token_audit')};
    GET DIAGNOSTICS removed_tokens = ROW_COUNT;
    ${remove('revocation_audit')};
    GET DIAGNOSTICS removed_revocations = ROW_COUNT;
    RETURN removed_tokens + removed_revocations;
  END $$`;
