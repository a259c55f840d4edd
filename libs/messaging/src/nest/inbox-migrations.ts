import type { MigrationInterface, QueryRunner } from 'typeorm';

type MigrationClass = new () => MigrationInterface;

/** Migrations that make the inbox table in `schema`; list them among the service's own. The service's role needs SELECT, INSERT,
 *  UPDATE and DELETE on it. @throws {RangeError} if the schema's name is not a plain identifier. */
export function inboxMigrations(schema: string): MigrationClass[] {
  if (!/^[a-z_][a-z0-9_]*$/.test(schema))
    throw new RangeError('a schema name is letters, digits and underscores');
  const table = `"${schema}"."inbox"`;
  return [
    class CreateInbox1767225600000 implements MigrationInterface {
      readonly name = 'CreateInbox1767225600000';

      async up(runner: QueryRunner): Promise<void> {
        await runner.query(`
          CREATE TABLE ${table} (
            queue        text        NOT NULL,
            message_id   text        NOT NULL,
            message_name text        NOT NULL,
            applied_at   timestamptz NOT NULL DEFAULT now(),
            answer       text,
            PRIMARY KEY (queue, message_id)
          )`);
        // For forgetting old rows.
        await runner.query(`CREATE INDEX inbox_applied_at ON ${table} USING brin (applied_at)`);
      }

      async down(runner: QueryRunner): Promise<void> {
        await runner.query(`DROP TABLE ${table}`);
      }
    },
  ];
}
