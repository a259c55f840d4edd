import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which business units hold which facility active. The changes that earlier versions applied are known per business unit only and stay in
 *  `task.business_unit_changes`: they keep older changes of that unit out. */
export class BusinessUnitFacilities1800000002000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE task.business_unit_facilities (
        business_unit_id bigint NOT NULL,
        facility_id bigint NOT NULL,
        is_active boolean NOT NULL,
        event_id uuid NOT NULL,
        occurred_at timestamptz NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (business_unit_id, facility_id)
      )`);
    // Finds what else holds a facility active.
    await runner.query(`
      CREATE INDEX business_unit_facilities_active ON task.business_unit_facilities (facility_id) WHERE is_active`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE task.business_unit_facilities');
  }
}
