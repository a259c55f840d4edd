import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The audit trail of applications, their secrets and the signing keys. */
export class AuditAdministration1764300000000 implements MigrationInterface {
  readonly name = 'AuditAdministration1764300000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of Object.keys(AUDITED))
      for (const trigger of ['audit', 'audit_update'])
        await runner.query(`DROP TRIGGER ${trigger} ON auth.${table}`);
    await runner.query(`DROP FUNCTION auth.audit_administration()`);
    await runner.query(`DROP TABLE auth.administration_audit`);
  }
}

/** The column that names a row, by table. */
const AUDITED = { application: 'application_key', application_secret: 'application_key', signing_key: 'kid' };

// Triggers: the row belongs to the change whoever makes it, the command line, a replica that generates its own key, or
// somebody with psql. They run as the owner, because the service's role may not touch the trail.
const STATEMENTS = [
  `CREATE TABLE auth.administration_audit (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    object text NOT NULL,
    name text NOT NULL,
    operation text NOT NULL,
    change jsonb NOT NULL,
    database_role text NOT NULL DEFAULT session_user,
    program text DEFAULT current_setting('application_name', true),
    address inet DEFAULT inet_client_addr()
  )`,
  // The new values of what has changed; of a removed row all it had. Sealed secrets and keys are left out: even sealed they
  // have no business in a trail, and the key that seals them may leak one day.
  `CREATE FUNCTION auth.audit_administration() RETURNS trigger
   LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
   DECLARE
     hidden text[] := ARRAY['ciphertext', 'private_ciphertext', 'public_jwk'];
     before jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE to_jsonb(OLD) - hidden END;
     after jsonb := CASE WHEN TG_OP = 'DELETE' THEN before ELSE to_jsonb(NEW) - hidden END;
   BEGIN
     INSERT INTO auth.administration_audit (object, name, operation, change)
     SELECT TG_TABLE_NAME, after ->> TG_ARGV[0], lower(TG_OP), coalesce(jsonb_object_agg(key, value), '{}')
     FROM jsonb_each(after) WHERE TG_OP = 'DELETE' OR before -> key IS DISTINCT FROM value;
     RETURN NULL;
   END $$`,
  `REVOKE ALL ON FUNCTION auth.audit_administration() FROM PUBLIC`,
  ...Object.entries(AUDITED).flatMap(([table, name]) => [
    `CREATE TRIGGER audit AFTER INSERT OR DELETE ON auth.${table}
     FOR EACH ROW EXECUTE FUNCTION auth.audit_administration('${name}')`,
    // Loading the same development identities again changes nothing, and leaves nothing.
    `CREATE TRIGGER audit_update AFTER UPDATE ON auth.${table}
     FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION auth.audit_administration('${name}')`,
  ]),
];
