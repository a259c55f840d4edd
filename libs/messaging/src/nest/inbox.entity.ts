import { Column, Entity, Index, type MigrationInterface, PrimaryColumn, type QueryRunner } from 'typeorm';

/**
 * A message that a queue's handler has applied, written in the handler's transaction. The table is in the
 * service's own schema.
 */
@Entity('inbox')
export class InboxMessage {
  @PrimaryColumn('text')
  queue!: string;

  @PrimaryColumn('text', { name: 'message_id' })
  messageId!: string;

  @Column('text', { name: 'message_name' })
  messageName!: string;

  /** A BRIN index, because only the purge of old rows uses it. */
  @Index('inbox_applied_at', { type: 'brin' })
  @Column('timestamptz', { name: 'applied_at', default: () => 'now()' })
  appliedAt!: Date;

  /**
   * Hash of the message. A later message with the same id must have the same hash. Null in rows written by
   * release 1.0.0.
   */
  @Column('text', { name: 'content_hash', nullable: true })
  contentHash!: string | null;

  /** The outcome as JSON if the message is a request; a repetition receives it again. */
  @Column('text', { name: 'answer', nullable: true })
  response!: string | null;
}

/**
 * Returns the migrations that create the inbox table in `schema`, to add to the service's own migrations. The
 * service's role needs SELECT, INSERT, UPDATE and DELETE on the table.
 * @throws {RangeError} if the schema's name is not a plain identifier
 */
export function inboxMigrations(schema: string): (new () => MigrationInterface)[] {
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
        await runner.query(`CREATE INDEX inbox_applied_at ON ${table} USING brin (applied_at)`);
      }

      async down(runner: QueryRunner): Promise<void> {
        await runner.query(`DROP TABLE ${table}`);
      }
    },
    class InboxContentHash1800000009000 implements MigrationInterface {
      readonly name = 'InboxContentHash1800000009000';

      async up(runner: QueryRunner): Promise<void> {
        await runner.query(`ALTER TABLE ${table} ADD content_hash text`);
      }

      async down(runner: QueryRunner): Promise<void> {
        await runner.query(`ALTER TABLE ${table} DROP content_hash`);
      }
    },
  ];
}
