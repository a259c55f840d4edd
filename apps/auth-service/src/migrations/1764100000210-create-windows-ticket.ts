import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Remembers which Kerberos tickets were used, for all replicas. Logged, not UNLOGGED: a crash must not forget. */
export class CreateWindowsTicket1764100000210 implements MigrationInterface {
  readonly name = 'CreateWindowsTicket1764100000210';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE auth.windows_ticket (
        authenticator_hash bytea PRIMARY KEY CHECK (octet_length(authenticator_hash) = 32),
        seen_at timestamptz NOT NULL DEFAULT now()
      )`);
    await runner.query(`CREATE INDEX windows_ticket_seen_at ON auth.windows_ticket (seen_at)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE auth.windows_ticket`);
  }
}
