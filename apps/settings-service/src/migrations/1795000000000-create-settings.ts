import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Keys collate "C", so that the database's collation affects neither the equality nor the order of names.
 *
 * Values are text, because jsonb rejects \u0000 and lone surrogates, reorders members and rounds numbers. The
 * CHECK still ensures that they are JSON.
 *
 * A revision is unique over all settings, so an ETag is never reused, not even by a setting that was deleted
 * and created again.
 *
 * A history identifier is drawn after the setting's row is locked, so the identifiers of one setting are in
 * commit order.
 */
const UP: readonly string[] = [
  `CREATE SEQUENCE settings.setting_revision`,
  `CREATE TABLE settings.setting (
     subsystem_key  text COLLATE "C" NOT NULL,
     setting_key    text COLLATE "C" NOT NULL,
     subsystem_name text NOT NULL,
     setting_name   text NOT NULL,
     value_text     text NOT NULL CONSTRAINT setting_value_is_json CHECK (value_text::json IS NOT NULL),
     revision       bigint NOT NULL DEFAULT nextval('settings.setting_revision'),
     CONSTRAINT setting_pkey PRIMARY KEY (subsystem_key, setting_key)
   )`,
  `CREATE TABLE settings.setting_history (
     history_id         bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT setting_history_pkey PRIMARY KEY,
     subsystem_key      text COLLATE "C" NOT NULL,
     setting_key        text COLLATE "C" NOT NULL,
     subsystem_name     text NOT NULL,
     setting_name       text NOT NULL,
     operation          text NOT NULL CONSTRAINT setting_history_operation CHECK (operation IN ('write', 'delete')),
     value_text         text NOT NULL,
     revision           bigint NOT NULL,
     person_id          bigint,
     user_id            bigint,
     person_name        text,
     persona            smallint NOT NULL,
     request_id         text NOT NULL,
     idempotency_digest bytea,
     occurred_at        timestamptz NOT NULL DEFAULT clock_timestamp()
   )`,
  `CREATE INDEX setting_history_by_setting
     ON settings.setting_history (subsystem_key, setting_key, history_id DESC)`,
  `CREATE UNIQUE INDEX setting_history_idempotency
     ON settings.setting_history (idempotency_digest) WHERE idempotency_digest IS NOT NULL`,
];

const DOWN: readonly string[] = [
  `DROP TABLE settings.setting_history`,
  `DROP TABLE settings.setting`,
  `DROP SEQUENCE settings.setting_revision`,
];

export class CreateSettings1795000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement);
  }
}
