import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds the persona that a role or facility of the person directory belongs to. Nullable, because the
 * directory may not know it, and the previous release does not write it.
 */
export class AddPersonaOfAuthority1796200000000 implements MigrationInterface {
  readonly name = 'AddPersonaOfAuthority1796200000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const table of ['person_role', 'person_facility'])
      await runner.query(`ALTER TABLE person_directory.${table} ADD COLUMN persona integer`);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of ['person_role', 'person_facility'])
      await runner.query(`ALTER TABLE person_directory.${table} DROP COLUMN persona`);
  }
}

/** Indexes technicians by provider and name. */
export class IndexTechnicianNames1796200000100 implements MigrationInterface {
  readonly name = 'IndexTechnicianNames1796200000100';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, {
      schema: 'service_providers',
      table: 'technician',
      name: 'technician_provider_name',
      definition: '(provider_id, display_name)',
    });
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexConcurrently(runner, 'service_providers', 'technician_provider_name');
  }
}
