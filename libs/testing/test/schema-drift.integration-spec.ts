import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { createTestDatabase, describeSchemaDrift } from '../src';
import { findSchemaDrift } from '../src/describe-schema-drift';

@Entity('city')
class City {
  @PrimaryColumn({ type: 'text', primaryKeyConstraintName: 'city_pkey' })
  name!: string;

  @Column({ type: 'integer' })
  inhabitants!: number;
}

class CreateCities1700000000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE city (name text PRIMARY KEY, inhabitants integer NOT NULL)');
    await runner.query('CREATE INDEX city_by_size ON city (inhabitants) INCLUDE (name)');
    await runner.query('CREATE TABLE log (line text)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE log, city');
  }
}

describeSchemaDrift({
  schema: 'atlas',
  entities: [City],
  migrations: [CreateCities1700000000001],
  ignored: [
    { matches: /^DROP INDEX "atlas"\."city_by_size"$/, because: 'TypeORM knows no INCLUDE' },
    { matches: /^log$/, because: 'nothing reads it' },
  ],
});

it('finds a table without an entity, and a column that differs', async () => {
  const database = await createTestDatabase({ migrate: () => Promise.resolve() });
  try {
    await database.query('CREATE SCHEMA atlas');
    await database.query('CREATE TABLE atlas.city (name text PRIMARY KEY, inhabitants integer)');
    await database.query('CREATE TABLE atlas.forgotten (line text)');
    expect(await findSchemaDrift(database.ownerUrl, { schema: 'atlas', entities: [City] })).toEqual([
      'forgotten',
      'ALTER TABLE "atlas"."city" ALTER COLUMN "inhabitants" SET NOT NULL',
    ]);
  } finally {
    await database.drop();
  }
});
