import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Keys collate "C", so that no database collation decides what is one name or in which order a list comes.
 * Values are text: jsonb refuses \u0000 and lone surrogates, reorders members and rounds numbers; the CHECK
 * keeps them JSON all the same. A revision is unique over all settings, so that an ETag is never reused, not
 * even by a setting that was deleted and made again. History identifiers are drawn after the setting's row is
 * locked: per setting, their order is the order of the commits.
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
