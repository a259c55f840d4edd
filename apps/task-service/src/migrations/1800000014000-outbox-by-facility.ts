import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A long backlog of one facility must not lie in the way of the others in its partition: the relay goes from
 * facility to facility.
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
