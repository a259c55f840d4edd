import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Each message type goes over one bus: while that is away, its backlog must not lie in the way of what goes over the other. */
export class OutboxByType1800000002001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE INDEX outbox_waiting ON task.outbox (partition, message_type, sequence) WHERE parked_at IS NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX task.outbox_waiting');
  }
}
