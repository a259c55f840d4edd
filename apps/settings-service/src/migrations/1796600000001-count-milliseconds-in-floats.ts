import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * As in the migration NoteOneInstant, but with date_part, which returns a float: `extract` returns a numeric,
 * which costs one microsecond more per row.
 */
const NEXT_REVISION = `
  CREATE OR REPLACE FUNCTION settings.next_revision() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT ((date_part('epoch', clock_timestamp()) * 1000)::bigint << 20) | (nextval('settings.setting_revision') & 1048575)
  $$`;

export class CountMillisecondsInFloats1796600000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(NEXT_REVISION);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations only go forward'));
  }
}
