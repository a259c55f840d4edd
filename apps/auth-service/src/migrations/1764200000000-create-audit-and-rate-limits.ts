import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The audit trail of tokens and revocations, and the counters of the rate limits. */
export class CreateAuditAndRateLimits1764200000000 implements MigrationInterface {
  readonly name = 'CreateAuditAndRateLimits1764200000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION auth.purge_audit(integer)`);
    await runner.query(`DROP TABLE auth.rate_limit, auth.revocation_audit, auth.token_audit`);
  }
}

const PURGE_BATCH = 10_000;

// Identifiers rise with time, so the oldest rows are the first ones of the primary key; BRIN finds a span of time at
// almost no cost to the insert.
const STATEMENTS = [
  `CREATE TABLE auth.token_audit (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    trace_id text,
    flow text NOT NULL,
    status smallint NOT NULL,
    reason smallint,
    detail text,
    application_key text,
    subject text,
    user_name text,
    address inet,
    access_token_id uuid,
    CHECK ((status = 200) = (reason IS NOT NULL AND reason = 0))
  )`,
  `CREATE INDEX token_audit_occurred_at ON auth.token_audit USING brin (occurred_at)`,
  `CREATE TABLE auth.revocation_audit (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    trace_id text,
    domain text NOT NULL,
    identifier text NOT NULL,
    because text NOT NULL,
    revoked_by_subject text,
    revoked_by_client text,
    address inet
  )`,
  `CREATE INDEX revocation_audit_occurred_at ON auth.revocation_audit USING brin (occurred_at)`,
  // The service may only insert. This is the one way for it to remove rows, and it cannot reach the last 30 days: who
  // takes the service over cannot wipe the traces.
  `CREATE FUNCTION auth.purge_audit(retention_days integer) RETURNS bigint
   LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
   DECLARE
     removed_tokens bigint;
     removed_revocations bigint;
     oldest timestamptz := now() - greatest(retention_days, 30) * interval '1 day';
   BEGIN
     IF retention_days IS NULL THEN RAISE EXCEPTION 'a retention is required'; END IF;
     DELETE FROM auth.token_audit WHERE audit_id IN
       (SELECT audit_id FROM auth.token_audit ORDER BY audit_id LIMIT ${String(PURGE_BATCH)}) AND occurred_at < oldest;
     GET DIAGNOSTICS removed_tokens = ROW_COUNT;
     DELETE FROM auth.revocation_audit WHERE audit_id IN
       (SELECT audit_id FROM auth.revocation_audit ORDER BY audit_id LIMIT ${String(PURGE_BATCH)}) AND occurred_at < oldest;
     GET DIAGNOSTICS removed_revocations = ROW_COUNT;
     RETURN removed_tokens + removed_revocations;
   END $$`,
  `REVOKE ALL ON FUNCTION auth.purge_audit(integer) FROM PUBLIC`,
  // UNLOGGED: no disk write on the way to a token. A crash of the server forgets a minute of counting, nothing else.
  `CREATE UNLOGGED TABLE auth.rate_limit (
    bucket text COLLATE "C" PRIMARY KEY,
    free_at timestamptz NOT NULL
  )`,
  `CREATE INDEX rate_limit_free_at ON auth.rate_limit (free_at)`,
];
