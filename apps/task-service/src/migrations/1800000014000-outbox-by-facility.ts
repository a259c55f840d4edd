import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Index for reading the outbox facility by facility, so that a long backlog of one facility does not block
 * the others of its partition.
 */
export class OutboxByFacility1800000014000 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, {
      schema: 'task',
      table: 'outbox',
      name: 'outbox_turns',
      definition: '(partition, message_type, facility_id, sequence) WHERE parked_at IS NULL',
    });
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexConcurrently(runner, 'task', 'outbox_turns');
  }
}
