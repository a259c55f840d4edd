import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Index for reading the outbox by message type. Each type goes over one bus: the backlog of a bus that is
 * down must not slow down reads of the other types.
 */
export class OutboxByType1800000002001 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, {
      schema: 'task',
      table: 'outbox',
      name: 'outbox_waiting',
      definition: '(partition, message_type, sequence) WHERE parked_at IS NULL',
    });
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexConcurrently(runner, 'task', 'outbox_waiting');
  }
}
